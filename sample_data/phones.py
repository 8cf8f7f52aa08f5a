"""Telephone numbers of many countries, and the ways in which people write one and the same number.

A block is a run of numbers of one country that share their leading digits and are all valid, whatever
the rest; the tests hold them against `phonenumbers`. Numbers are made in E.164 first; each way of
writing one names the same number to whoever knows the country of the record.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .draw import Draw, Index, fixed_text

# country, line, calling code, leading digits : free digits | written at home | written after the calling code
_BLOCKS = """
US mobile 1 2122:6,4155:6,3123:6,6172:6,2064:6,5124:6 | (###) ###-#### | ###-###-####
US office 1 2123:6,4156:6,3127:6,6175:6,2062:6,7136:6 | (###) ###-#### | ###-###-####
GB mobile 44 7400:6,7980:6,7880:6,7525:6 | 0#### ###### | #### ######
GB office 44 2079:6 | 0## #### #### | ## #### ####
GB office 44 1612:6,1212:6,1132:6,1415:6 | 0### ### #### | ### ### ####
CA mobile 1 4164:6,5145:6,6046:6 | (###) ###-#### | ###-###-####
CA office 1 4169:6,5148:6,6042:6,4032:6 | (###) ###-#### | ###-###-####
AU mobile 61 412:6,433:6,421:6 | 0### ### ### | ### ### ###
AU office 61 29:7,38:7,73:7 | (0#) #### #### | # #### ####
DE mobile 49 1511:7,1520:7 | 0#### ####### | #### #######
DE mobile 49 1701:6,1714:6,1732:6 | 0### ####### | ### #######
DE mobile 49 1764:7 | 0### ######## | ### ########
DE office 49 302:6,893:6,402:6,693:6 | 0## ####### | ## #######
DE office 49 2213:5,7113:5,3513:5 | 0### ###### | ### ######
AT mobile 43 6641:6,6763:6,6602:6 | 0### ####### | ### #######
AT mobile 43 6991:7 | 0### ######## | ### ########
AT office 43 15:6 | 0# ####### | # #######
AT office 43 3164:5,6623:5,7323:5 | 0### ###### | ### ######
CH mobile 41 762:6,793:6,782:6 | 0## ### ## ## | ## ### ## ##
CH office 41 443:6,223:6,613:6,313:6,213:6 | 0## ### ## ## | ## ### ## ##
FR mobile 33 61:7,66:7,62:7,75:7 | 0# ## ## ## ## | # ## ## ## ##
FR office 33 14:7,47:7,49:7,38:7,55:7 | 0# ## ## ## ## | # ## ## ## ##
ES mobile 34 61:7,65:7,66:7,62:7 | ### ## ## ## | ### ## ## ##
ES office 34 915:6,933:6,963:6,954:6,944:6 | ### ## ## ## | ### ## ## ##
MX mobile 52 551:7,331:7,811:7 | ## #### #### | ## #### ####
MX office 52 552:7,333:7,818:7 | ## #### #### | ## #### ####
BR mobile 55 1198:7,2199:7,3198:7,4199:7 | (##) #####-#### | ## #####-####
BR office 55 113:7,213:7,313:7,413:7 | (##) ####-#### | ## ####-####
PT mobile 351 91:7,93:7,96:7 | ### ### ### | ### ### ###
PT office 351 21:7,22:7 | ## ### #### | ## ### ####
PT office 351 2392:5 | ### ### ### | ### ### ###
IT mobile 39 335:7,347:7,328:7,339:7 | ### ### #### | ### ### ####
IT office 39 022:6,064:6 | ## ### #### | ## ### ####
IT office 39 0115:5,0512:5 | ### ###### | ### ######
NL mobile 31 61:7,62:7,65:7 | 0# ######## | # ########
NL office 31 20:7,10:7,70:7,30:7 | 0## ### #### | ## ### ####
PL mobile 48 50:7,60:7,51:7,79:7 | ### ### ### | ### ### ###
PL office 48 22:7,12:7,71:7,61:7 | ## ### ## ## | ## ### ## ##
CZ mobile 420 601:6,603:6,724:6,776:6 | ### ### ### | ### ### ###
CZ office 420 22:7,53:7,58:7 | ### ### ### | ### ### ###
SE mobile 46 70:7,73:7,76:7 | 0##-### ## ## | ## ### ## ##
SE office 46 81:5 | 0#-## ## ## | # ## ## ##
SE office 46 86:6 | 0#-### ## ## | # ### ## ##
SE office 46 312:5,402:5 | 0##-## ## ## | ## ## ## ##
DK mobile 45 302:5,317:5,405:5,512:5 | ## ## ## ## | ## ## ## ##
DK office 45 322:5,331:5,865:5 | ## ## ## ## | ## ## ## ##
TR mobile 90 532:7,542:7,505:7 | 0### ### ## ## | ### ### ## ##
TR office 90 212:7,312:7,232:7,216:7 | (0###) ### ## ## | ### ### ## ##
GR mobile 30 694:7,697:7,693:7 | ### ### #### | ### ### ####
GR office 30 210:7 | ## #### #### | ## #### ####
GR office 30 2310:6,2610:6 | ### ### #### | ### ### ####
UA mobile 380 50:7,67:7,63:7,93:7 | 0## ### #### | ## ### ####
UA office 380 482:6 | 0### ### ### | ### ### ###
IL mobile 972 503:6,532:6,504:6 | 0##-###-#### | ##-###-####
IL office 972 37:6,48:6,97:6 | 0#-###-#### | #-###-####
EG mobile 20 100:7,111:7,122:7 | 0## ######## | ## ########
EG office 20 2:8,22:7 | 0# ######## | # ########
EG office 20 3:7,33:6 | 0# ####### | # #######
IN mobile 91 98100:5,98200:5,98450:5,9880:6,800:7 | 0##### ##### | ##### #####
IN office 91 112:7,222:7,802:7,442:7 | 0## #### #### | ## #### ####
CN mobile 86 138:8,1391:7,1360:7,1850:7 | ### #### #### | ### #### ####
CN office 86 106:7,216:7,208:7,102:7,2162:6 | 0## #### #### | ## #### ####
JP mobile 81 901:7,802:7,904:7 | 0##-####-#### | ##-####-####
JP office 81 33:7,66:7,333:6 | 0#-####-#### | #-####-####
JP office 81 52:7,452:6 | 0##-###-#### | ##-###-####
KR mobile 82 102:7,103:7,109:7 | 0##-####-#### | ##-####-####
KR office 82 22:6,23:6,25:6 | 0#-###-#### | #-###-####
KR office 82 512:6 | 0##-###-#### | ##-###-####
VN mobile 84 90:7,91:7,98:7 | 0### ### ### | ### ### ###
VN office 84 243:7,283:7 | 0## #### #### | ## #### ####
"""

# Countries where 00 is dialled before a calling code.
_DOUBLE_ZERO = frozenset(
    [
        "GB",
        "DE",
        "AT",
        "CH",
        "FR",
        "ES",
        "MX",
        "PT",
        "IT",
        "NL",
        "PL",
        "CZ",
        "SE",
        "DK",
        "TR",
        "GR",
        "UA",
        "IL",
        "EG",
        "IN",
        "CN",
        "VN",
    ]
)


@dataclass(frozen=True)
class Block:
    """Numbers that share `heads` leading digits each, with masks in which # stands for a digit."""

    country: str
    line: str  # mobile or office
    code: str
    heads: tuple[tuple[str, int], ...]
    home: str
    abroad: str

    @property
    def trunk(self) -> bool:
        """True where a 0 is dialled before the number at home."""
        return self.home.lstrip("(").startswith("0")


def _read(line: str) -> Block:
    left, home, abroad = (part.strip() for part in line.split("|"))
    country, kind, code, heads = left.split()
    pairs = (head.split(":") for head in heads.split(","))
    return Block(country, kind, code, tuple((h, int(n)) for h, n in pairs), home, abroad)


BLOCKS: tuple[Block, ...] = tuple(_read(line) for line in _BLOCKS.strip().splitlines())
"""All blocks; several make up one country and line."""

WAYS = ("e164", "spaced", "home", "double_zero", "bracket_zero", "dots", "slash", "digits")
"""The ways of writing a number; not each way is usual for each country."""


def written(block: Block, way: str) -> str:
    """The mask of one way; a way that a country does not know falls back to another."""
    if way == "e164":
        return f"+{block.code}" + "#" * block.abroad.count("#")
    if way == "double_zero" and block.country in _DOUBLE_ZERO:
        return f"00{block.code} {block.abroad}"
    if way == "bracket_zero" and block.trunk:
        return f"+{block.code} (0){block.abroad}"
    if way == "dots":
        return block.home.replace("(", "").replace(") ", ".").replace(")", ".").replace(" ", ".").replace("-", ".")
    if way == "slash" and block.country in ("DE", "AT", "CH") and block.home.count(" ") >= 1:
        return block.home.replace(" ", "/", 1)
    if way == "digits":
        return "".join(c for c in block.home if c in "0#")
    if way in ("home", "slash"):
        return block.home
    return f"+{block.code} {block.abroad}"


@dataclass(frozen=True)
class Numbers:
    """Numbers for rows of given countries: `e164` is the truth, `write` gives any way of writing them."""

    block: Index  # position in BLOCKS
    digits: NDArray[np.uint8]  # national digits as ASCII, left-aligned
    length: Index

    def write(self, way: NDArray[np.int64]) -> pa.Array:
        """Each number in the way of WAYS that its row asks for, as Arrow text."""
        parts: list[pa.Array] = []
        places: list[Index] = []
        shape = self.block * len(WAYS) + way
        for code in np.unique(shape):
            rows = np.flatnonzero(shape == code)
            block = BLOCKS[int(code) // len(WAYS)]
            mask = np.frombuffer(written(block, WAYS[int(code) % len(WAYS)]).encode(), dtype=np.uint8)
            out = np.repeat(mask[None, :], len(rows), axis=0)
            holes = np.flatnonzero(mask == ord("#"))
            out[:, holes] = self.digits[rows][:, : len(holes)]
            parts.append(fixed_text(out))
            places.append(rows)
        if not parts:
            return pa.array([], pa.string())
        order = np.empty(len(self.block), dtype=np.int64)
        order[np.concatenate(places)] = np.arange(len(self.block))
        return pc.take(pa.concat_arrays(parts), pa.array(order))

    def e164(self) -> pa.Array:
        """The numbers as +4930123456, as Arrow text."""
        return self.write(np.zeros(len(self.block), dtype=np.int64))


_HEADS = [(b, head, free) for b, block in enumerate(BLOCKS) for head, free in block.heads]
_CHOICES: dict[tuple[str, str], NDArray[np.int64]] = {}
for _place, _head in enumerate(_HEADS):
    _line = (BLOCKS[_head[0]].country, BLOCKS[_head[0]].line)
    _CHOICES[_line] = np.append(_CHOICES.get(_line, np.empty(0, np.int64)), _place)


def numbers(draw: Draw, stream: str, index: Index, countries: list[str], country: Index, line: str) -> Numbers:
    """A number a row: `country` holds positions in `countries`, `line` is mobile or office."""
    head = np.zeros(len(index), dtype=np.int64)
    luck = draw.bits(f"{stream}/block", index)
    for place in np.unique(country):
        choices = _CHOICES[countries[int(place)], line]
        here = country == place
        head[here] = choices[(luck[here] % np.uint64(len(choices))).astype(np.int64)]
    tail = draw.bits(f"{stream}/tail", index)
    digits = np.zeros((len(index), 12), dtype=np.uint8)
    length = np.zeros(len(index), dtype=np.int64)
    block = np.zeros(len(index), dtype=np.int64)
    for place in np.unique(head):
        b, text, free = _HEADS[int(place)]
        rows: Index = np.flatnonzero(head == place)
        block[rows] = b
        length[rows] = len(text) + free
        digits[rows, : len(text)] = np.frombuffer(text.encode(), dtype=np.uint8)
        rest = tail[rows] % np.uint64(10**free)
        for position in range(free):
            power = np.uint64(10 ** (free - 1 - position))
            digits[rows, len(text) + position] = (rest // power % np.uint64(10)).astype(np.uint8) + ord("0")
    return Numbers(block, digits, length)
