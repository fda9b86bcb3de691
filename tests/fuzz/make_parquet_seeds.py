#!/usr/bin/env python3
"""Writes parquet_seeds.json, small Parquet files in base64 with which the harness begins; make_seeds.py, which reads it,
has no pyarrow.  usage: make_parquet_seeds.py, with a Python that has pyarrow
"""

import base64
import datetime
import decimal
import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

TEXTS = ["one", "two", None, "", "one", "Ünïcödé"]


def file(table, **settings):
    settings = {"compression": "none", "row_group_size": 4, "store_schema": False, "write_statistics": False, **settings}
    out = io.BytesIO()
    pq.write_table(table, out, **settings)
    return out.getvalue()


def files():
    texts = pa.table({"text": TEXTS})
    for codec in ("none", "snappy", "gzip", "brotli", "zstd", "lz4"):
        yield file(texts, compression=codec, use_dictionary=codec in ("none", "zstd"))
    yield file(texts, data_page_version="2.0", compression="snappy", write_page_checksum=True)
    for encoding in ("DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"):
        yield file(texts, use_dictionary=False, column_encoding={"text": encoding})
    yield file(pa.table({"text": pa.array([], pa.string())}))
    turns = [[{"role": "user", "content": "a"}, None], [], None]
    yield file(pa.table({"turns": turns, "answer": [{"text": ["x", None], "start": [1, 2]}] * 3}), use_dictionary=False)
    yield file(pa.table({"map": pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int32())),
                         "fixed": pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int8(), 2))}))
    day = datetime.datetime(2026, 11, 29, 13, 5, 0, 250_000)
    yield file(pa.table({"when": [day], "date": [day.date()], "time": [day.time()], "price": [decimal.Decimal("1.50")],
                         "flag": [True], "half": pa.array([0.5], pa.float16()), "bytes": [b"\xff"]}), use_dictionary=False)


def main():
    seeds = [base64.b64encode(content).decode() for content in files()]
    Path(__file__).with_name("parquet_seeds.json").write_text(json.dumps(seeds, indent=0) + "\n")


if __name__ == "__main__":
    main()
