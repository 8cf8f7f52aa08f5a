"""What `migrate watch` shows: a job followed by its log, in lines and on a terminal."""
