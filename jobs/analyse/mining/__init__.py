"""Mining: what the archive shows beyond single sessions. Read `job` first, then any job; `run` puts them together.

A job is data and pure functions: Ibis expressions (`heavy`) reduce the rows of some days to small frames on whatever
engine holds them, `refine` works on these with numpy and scipy, `find` looks over all days of a period. What was made
of a day is kept and made again when the day's rows are others. What comes out is Parquet and a section of the report,
without anything about fewer than k sessions and users (`anonymity`).
"""
