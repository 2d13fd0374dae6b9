"""Time zones by name, the same on every machine, and which of them fit a set of proven offsets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import cache
from io import BytesIO
from zoneinfo import ZoneInfo

from exhume.errors import UsageError
from exhume.events.times import MICROSECONDS, offset_text
from exhume.packaged import packaged

#: Zones that are taken first where several fit what is proven: where most people and most servers are. Reviewed by
#: hand; the first that fits wins, so a zone stands before its smaller twins.
PREFERRED = (
    *("UTC", "America/New_York", "America/Chicago", "America/Denver", "America/Los_Angeles", "Europe/London"),
    *("Europe/Berlin", "Europe/Paris", "Europe/Helsinki", "Europe/Istanbul", "Europe/Moscow", "Asia/Dubai"),
    *("Asia/Karachi", "Asia/Kolkata", "Asia/Kathmandu", "Asia/Dhaka", "Asia/Yangon", "Asia/Bangkok", "Asia/Shanghai"),
    *("Asia/Tokyo", "Australia/Sydney", "Australia/Brisbane", "Australia/Adelaide", "Australia/Darwin"),
    *("Australia/Perth", "Pacific/Auckland", "America/Sao_Paulo", "America/Argentina/Buenos_Aires", "America/Bogota"),
    *("America/Phoenix", "America/Anchorage", "Pacific/Honolulu", "America/Halifax", "America/St_Johns"),
    *("Africa/Lagos", "Africa/Cairo", "Africa/Johannesburg", "Africa/Nairobi", "Asia/Jerusalem", "Asia/Tehran"),
    *("Asia/Kabul", "Asia/Tashkent", "Asia/Singapore", "Atlantic/Azores", "Pacific/Chatham"),
)

_BUCKET = 900 * MICROSECONDS
_CACHED_BUCKETS = 200_000
#: Before this, offsets were changed at odd seconds (local mean time), so a quarter of an hour can hold two.
_REGULAR_SINCE = 2 * 365 * 86_400 * MICROSECONDS
_NAIVE_EPOCH = datetime(1970, 1, 1)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+\-]*(?:/[A-Za-z0-9_+\-]+){0,2}", re.ASCII)
_FIXED = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?([0-5]\d))?", re.ASCII)


class Zone:
    """A zone: what is the offset of a naive time in it?"""

    __slots__ = ("_buckets", "_info", "name")

    def __init__(self, name: str, info: tzinfo) -> None:
        self.name = name
        self._info = info
        self._buckets: dict[int, tuple[int, int]] = {}

    @property
    def fixed(self) -> bool:
        """Has it one offset for ever?"""
        return isinstance(self._info, timezone)

    def offsets(self, us: int) -> tuple[int, int]:
        """Offsets from UTC, in seconds, of a naive time in microseconds: of its first and of its second occurrence.

        Both are equal but for an hour that occurs twice (the first is greater) or never (the first is smaller).
        """
        bucket = us // _BUCKET
        known = self._buckets.get(bucket)
        if known is not None:
            return known
        found = self.compute(us)
        if us >= _REGULAR_SINCE:
            if len(self._buckets) >= _CACHED_BUCKETS:
                self._buckets.clear()
            self._buckets[bucket] = found
        return found

    def compute(self, us: int) -> tuple[int, int]:
        """The same without the cache, for zones that are only tried."""
        try:
            moment = (_NAIVE_EPOCH + timedelta(microseconds=us)).replace(tzinfo=self._info)
            offsets = moment.utcoffset(), moment.replace(fold=1).utcoffset()
        except OverflowError:
            return 0, 0
        first, second = (0 if one is None else round(one.total_seconds()) for one in offsets)
        return first, second


UTC_ZONE = Zone("UTC", UTC)


def fixed_zone(seconds: int) -> Zone:
    """The zone of one offset, named like `-05:00`."""
    return UTC_ZONE if seconds == 0 else Zone(offset_text(seconds), timezone(timedelta(seconds=seconds)))


@cache
def load_zone(name: str) -> Zone:
    """The zone of an IANA name or a fixed offset (`-05:00`, `UTC+5:30`).

    Zones come from the tzdata package, never from the system, so that every machine reads the same.

    Raises:
        UsageError: there is no such zone.
    """
    if name.upper() in ("UTC", "Z", "GMT", "ETC/UTC"):
        return UTC_ZONE
    match = _FIXED.fullmatch(name)
    if match is not None and int(match.group(2)) <= 15:
        seconds = int(match.group(2)) * 3600 + int(match.group(3) or 0) * 60
        return fixed_zone(-seconds if match.group(1) == "-" else seconds)
    found = _packaged(name) if _NAME.fullmatch(name) else None
    if found is None:
        raise UsageError(
            f"There is no time zone {name!r}.",
            todo="Pass an IANA name such as America/New_York, an offset such as -05:00, or auto.",
        )
    return Zone(name, found)


def _packaged(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo.from_file(BytesIO(packaged("tzdata", f"zoneinfo/{name}")), key=name)
    except (OSError, ValueError):  # no such file, a folder, or a file that is not a zone
        return None


@cache
def _all_names() -> tuple[str, ...]:
    """Every zone of the package, preferred ones first, then by name."""
    listed = packaged("tzdata", "zones").decode().split()
    return (*PREFERRED, *sorted(set(listed) - set(PREFERRED)))


#: Points of proof: (offset in seconds, naive time in microseconds) -> how many sessions prove it.
Points = Mapping[tuple[int, int], int]


def agreement(zone: Zone, points: Points) -> int:
    """How many proofs agree with a zone."""
    return sum(count for (offset, us), count in points.items() if offset in zone.offsets(us))


def fit(points: Points) -> tuple[list[Zone], int]:
    """The zones that agree with most proofs, preferred ones first, and with how many.

    The long list of all zones is only tried where no preferred one agrees with nearly everything.
    """
    few = _condense(points)
    total = sum(few.values())
    best: list[Zone] = []
    least = total  # proofs that the best zone contradicts
    for index, name in enumerate(_all_names()):
        if index == len(PREFERRED) and least <= total * 0.03:
            break
        try:
            zone = load_zone(name)
        except UsageError:  # a name without a file: the list and the folder of tzdata disagree
            continue
        against = _against(zone, few, least)
        if against < least:
            best, least = [zone], against
        elif against == least < total:
            best.append(zone)
    return (best, agreement(best[0], points)) if best else ([UTC_ZONE], agreement(UTC_ZONE, points))


def _condense(points: Points) -> dict[tuple[int, int], int]:
    """Proofs of one offset within a fortnight as one: zones change seldom, and years of sessions must stay few."""
    groups: dict[tuple[int, int], tuple[int, int]] = {}
    for (offset, us), count in sorted(points.items(), key=lambda point: -point[1]):
        place, so_far = groups.get((offset, us // (14 * 86_400 * MICROSECONDS)), (us, 0))
        groups[offset, us // (14 * 86_400 * MICROSECONDS)] = (place, so_far + count)
    return {(offset, place): count for (offset, _), (place, count) in groups.items()}


def _against(zone: Zone, points: Points, enough: int) -> int:
    """How many proofs contradict a zone; counted no further than `enough`."""
    against = 0
    for (offset, us), count in points.items():
        if offset not in zone.compute(us):
            against += count
            if against > enough:
                break
    return against


def differ_at(zones: list[Zone], hours: Iterable[int]) -> int:
    """In how many of these naive hours (counted since 1970) do zones differ?"""
    first, *others = zones
    return sum(
        any(other.offsets(hour * 3600 * MICROSECONDS) != first.offsets(hour * 3600 * MICROSECONDS) for other in others)
        for hour in hours
    )
