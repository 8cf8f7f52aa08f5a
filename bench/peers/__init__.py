"""Those that are measured side by side: the raw pipe, Packhorse, and other tools in environments of their own."""

from bench.peers.connectorx_copy import CONNECTORX
from bench.peers.contender import Contender, NotRunError, Started
from bench.peers.dlt_copy import DLT
from bench.peers.ours import FORMS, packhorse
from bench.peers.pgloader_copy import PGLOADER
from bench.peers.raw_pipe import PIPE

PEERS = (CONNECTORX, DLT, PGLOADER)
"""Tools of others."""

__all__ = ["FORMS", "PEERS", "PIPE", "Contender", "NotRunError", "Started", "packhorse"]
