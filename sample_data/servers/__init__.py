"""Real servers of this machine's own, for tests, measurements and the demo: PostgreSQL out of a wheel, and MariaDB.

`PostgresServer` and `MariadbServer` lie in a temporary folder, on a free port and a socket, and end with the
process that started them. `DemoServer` goes on running. Never touches a server that it did not start.
"""

from .demo import DemoServer
from .mariadb import MariadbServer
from .postgres import PostgresServer
from .server import Database, NotInstalledError, ServerError

__all__ = ["Database", "DemoServer", "MariadbServer", "NotInstalledError", "PostgresServer", "ServerError"]
