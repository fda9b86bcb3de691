"""Random tables in Parquet files, with pyarrow's own reading of them as JSON lines.

Each <number>.parquet has beside it <number>.jsonl, the rows with all columns, and <number>.json: the columns and types,
the rows of each row group, and asked columns with the rows that have them alone.
"""

import datetime
import decimal
import json
import random

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError:  # then there is no Apache Arrow to build with, and no test that reads these files
    pa = None

FILES = 50
CODECS = ("none", "snappy", "gzip", "brotli", "zstd", "lz4")
UNITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
SECONDS_OF_DAY = 24 * 60 * 60
TEXTS = ("", "a", "Ünïcödé", "zwei\nZeilen", '"quoted"', "\0nul", "😀", "long " * 300)


def random_type(draw, depth=0):
    flat = [pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(),
            pa.float32(), pa.float64(), pa.float16(), pa.string(), pa.string(), pa.string(), pa.large_string(),
            pa.date32(), pa.timestamp(draw.choice(list(UNITS)[1:])),
            pa.timestamp("us", tz="UTC"), pa.time32("ms"), pa.time64("us"), pa.decimal128(12, 3), pa.decimal256(50, 7)]
    if depth == 0:  # pyarrow itself reads no dictionary within a list from several row groups
        flat.append(pa.dictionary(pa.int32(), pa.string()))
    if depth >= 3 or draw.random() < 0.6:
        return draw.choice(flat)
    inner = random_type(draw, depth + 1)
    kind = draw.choice(("list", "large_list", "fixed", "struct", "struct", "map"))
    if kind == "list":
        return pa.list_(inner)
    if kind == "large_list":
        return pa.large_list(inner)
    if kind == "fixed":
        return pa.list_(inner, 2)
    if kind == "map":
        return pa.map_(pa.string(), inner)
    return pa.struct([pa.field(name, random_type(draw, depth + 1)) for name in "xyz"[:draw.randint(1, 3)]])


def random_value(draw, kind, nulls=0.15):
    if draw.random() < nulls:
        return None
    if pa.types.is_dictionary(kind):
        return draw.choice(TEXTS)
    if pa.types.is_boolean(kind):
        return draw.random() < 0.5
    if pa.types.is_integer(kind):
        bits, low = kind.bit_width, 0 if pa.types.is_unsigned_integer(kind) else -(1 << (kind.bit_width - 1))
        return draw.choice((low, low + (1 << bits) - 1, 0, 1, draw.randrange(low, low + (1 << bits))))
    if pa.types.is_floating(kind):
        return pa.scalar(draw.choice((0.0, -0.5, 1.0, draw.uniform(-100, 100))), pa.float64()).cast(kind, safe=False).as_py()
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return draw.choice(TEXTS + ("w%d" % draw.randrange(100),))
    if pa.types.is_date(kind):
        return datetime.date.fromordinal(draw.randint(1, 3_652_059))
    if pa.types.is_timestamp(kind):  # as a count, see counted()
        return draw.choice((0, -1, draw.randrange(-(10 ** 17), 10 ** 17) // 10 ** (9 - UNITS[kind.unit])))
    if pa.types.is_time(kind):
        return draw.choice((0, draw.randrange(SECONDS_OF_DAY * 10 ** UNITS[kind.unit])))
    if pa.types.is_decimal(kind):
        return decimal.Decimal(draw.randrange(-(10 ** 11), 10 ** 11)).scaleb(-kind.scale)
    if pa.types.is_fixed_size_list(kind):
        return [random_value(draw, kind.value_type) for _ in range(kind.list_size)]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [random_value(draw, kind.value_type) for _ in range(draw.choice((0, 1, 2, 5)))]
    if pa.types.is_map(kind):
        return [(key, random_value(draw, kind.item_type)) for key in draw.sample(("k", "l", "m"), draw.randint(0, 3))]
    return {field.name: random_value(draw, field.type) for field in kind}


def clock(count, digits):
    seconds, fraction = divmod(count, 10 ** digits)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return text + (f".{fraction:0{digits}d}" if fraction else "")


def as_json(scalar):
    """A scalar of pyarrow as retort::parquet gives it."""
    kind = scalar.type
    if not scalar.is_valid:
        return None
    if pa.types.is_dictionary(kind):
        return scalar.as_py()
    if pa.types.is_date(kind):
        return scalar.as_py().isoformat()
    if pa.types.is_timestamp(kind):
        digits = UNITS[kind.unit]
        days, rest = divmod(scalar.cast(pa.int64()).as_py(), SECONDS_OF_DAY * 10 ** digits)
        day = datetime.date(1970, 1, 1) + datetime.timedelta(days=days)
        return f"{day.isoformat()}T{clock(rest, digits)}" + ("Z" if kind.tz else "")
    if pa.types.is_time(kind):
        count = scalar.cast(pa.int32() if kind.bit_width == 32 else pa.int64()).as_py()
        return clock(count, UNITS[kind.unit])
    if pa.types.is_decimal(kind):
        return format(scalar.as_py(), "f")
    if pa.types.is_map(kind):
        return [[as_json(pair["key"]), as_json(pair["value"])] for pair in scalar.values]
    if pa.types.is_struct(kind):
        return {field.name: as_json(scalar[i]) for i, field in enumerate(kind)}
    if pa.types.is_nested(kind):
        return [as_json(value) for value in scalar.values]
    return scalar.as_py()


def rows_of(table):
    columns = [column.combine_chunks() for column in table.columns]
    return [{name: as_json(column[i]) for name, column in zip(table.column_names, columns)} for i in range(table.num_rows)]


def random_table(draw, rows):
    fields = [pa.field(f"c{i}", random_type(draw)) for i in range(draw.randint(1, 6))] + [pa.field("text", pa.string())]
    draw.shuffle(fields)
    return pa.table([pa.array([random_value(draw, field.type) for _ in range(rows)], field.type) for field in fields],
                    schema=pa.schema(fields))


def parts_of(kind, name):
    """Names of parts of a column: a struct's, also within lists."""
    while pa.types.is_list(kind) or pa.types.is_large_list(kind):
        kind = kind.value_type
    return [f"{name}.{field.name}" for field in kind] if pa.types.is_struct(kind) else []


def write_table(draw, path):
    table = random_table(draw, draw.choice((0, 1, 7, 100, 1200)))
    pq.write_table(table, path, row_group_size=draw.choice((1, 10, 977, 100_000)) if table.num_rows < 1000 else draw.choice((500, 977)),
                   compression=draw.choice(CODECS), use_dictionary=draw.random() < 0.5,
                   data_page_version=draw.choice(("1.0", "2.0")), data_page_size=draw.choice((100, 1 << 20)),
                   write_page_checksum=draw.random() < 0.5, store_schema=draw.random() < 0.7)
    file = pq.ParquetFile(path)
    read = file.read()
    path.with_suffix(".jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows_of(read)))
    parts = [part for field in read.schema for part in parts_of(field.type, field.name)]
    names = draw.sample(read.schema.names, draw.randint(1, len(read.schema.names))) if not parts or draw.random() < 0.3 else [draw.choice(parts)]
    path.with_suffix(".json").write_text(json.dumps({
        "columns": [[field.name, str(field.type)] for field in read.schema],
        "rows_of_groups": [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)],
        "asked": names}))


def write(out_dir, shared):
    draw = random.Random(20261129)
    for number in range(FILES if pa else 0):
        write_table(draw, out_dir / "parquet" / f"{number}.parquet")
