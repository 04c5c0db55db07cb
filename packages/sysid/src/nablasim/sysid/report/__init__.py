"""What people see: pages, films and tables. The door of this room."""

from nablasim.sysid.report.curves import svg
from nablasim.sysid.report.films import animation, blend, png, strip
from nablasim.sysid.report.motions import FILE, motion_of
from nablasim.sysid.report.page import filled, made_by, write_page, write_report
from nablasim.sysid.report.tables import Table, estimates_table

__all__ = [
    "FILE",
    "Table",
    "animation",
    "blend",
    "estimates_table",
    "filled",
    "made_by",
    "motion_of",
    "png",
    "strip",
    "svg",
    "write_page",
    "write_report",
]
