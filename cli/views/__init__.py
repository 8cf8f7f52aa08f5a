"""How results look on a terminal and off it. Views print; they decide nothing and read nothing."""
