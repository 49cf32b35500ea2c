"""Writes the seed corpora below fuzz/corpus from the golden runs and a few inputs made by hand."""

import struct
from pathlib import Path

HERE = Path(__file__).parent
CORPUS = HERE / "corpus"
GOLDEN = HERE.parent / "tests" / "golden"
HEADER_BYTES = 12
FOOTER_BYTES = 4
# Between the two files of a step; no byte of UTF-8.
SEPARATOR = b"\xff"

PATTERNS = [
    ("relu", "conv1.relu_output_0"),
    ("[Ll]oss_(?!input).*output", "CrossEntropyLoss_output_0"),
    (r"^(?P<layer>\w+)\.(?:weight|bias)$", "fc.weight"),
    ("(?i)(?s)GRAD[^]]{,3}", "grad/x"),
    (r"(a+)+$", "a" * 30 + "b"),
    (r"(\w+\s?)*\Z", "x " * 20 + "!"),
    (r"(?<=a)b\1?\x41\u00e9\U0001f600\07", "ab"),
    (r"(x)?(?(1)y|z)", "xy"),
    ("é|ß", "straße"),
    (r"[[:alpha:]\]]+", "a]"),
]
INDEXES = [
    '{"meta": {"mode": "TRAIN", "mode_step": 3}, "shape_payload": [{"tensorname": "w", "shape": []}]}',
    '{"meta": {"mode": "EVAL", "mode_step": 0, "event_file_name": "../x"}, "tensor_payload": '
    '[{"tensorname": "\\u00e9\\ud83d\\ude00", "start_idx": 18446744073709551615, "length": 1}]}',
    '{"meta": {}, "tensor_payload": []}',
]
CONFIGS = [
    '{"LocalPath": "/tmp/x", "HookParameters": {"save_interval": "10", "train.save_steps": "1, 2",'
    ' "include_regex": "relu,tanh", "reductions": "min,abs_l2_norm", "save_all": "True",'
    ' "include_workers": "all", "durable": "step", "eval.when_nan": ["loss"]}}',
    '{"CollectionConfigurations": [{"CollectionName": "losses", "CollectionParameters":'
    ' {"include_regex": ["a,b", [1, "c"]], "end_step": 5.0, "save_histogram": 1,},},'
    ' {"CollectionName": "losses"}]}',
    '{"HookParameters": null, "CollectionConfigurations": [], "Unknown": {"a": [true, null]}}',
    "[" * 200 + "]" * 200,
]
COLLECTIONS = [
    '{"collections": {"a": {"include_regex": "x", "exclude_regex": ["("], "save_config":'
    ' {"TRAIN": null, "EVAL": {"save_steps": [3, 1, 3], "when_nan": ["l"]}}, "reduction_config":'
    ' {"reductions": "l1,abs_min", "extra_reductions": "median"}}}, "_meta": {"num_workers": 4}}',
    '{"collections": {"": {}}, "_meta": null}',
    '{"collections": {"a": {"save_config": {"save_interval": 2}}}, "_meta": {"num_workers": 0}}',
]
REQUESTS = [
    "tensor=net.0%2Fweight&tensor=%C3%A9+x&mode=TRAIN&points=4000",
    "points=-1&mode=GLOBAL&%zz",
    "0,:,-1:2:3,::4",
    "-9223372036854775808:99999999999999999999",
    "GET /api/runs/a%20b/values?slice=0 HTTP/1.1\r\nHost: localhost\r\nRange: bytes=0-1\r\n\r\n",
    "POST /api HTTP/1.1\nContent-Length: 5\nTransfer-Encoding: chunked\n\nabcde",
    "GET http://x/api?token=1 HTTP/1.0\r\nCookie: smdebug_token=1; a=b\r\n\r\n",
]
S3 = [
    '<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
    "<EncodingType>url</EncodingType><IsTruncated>true</IsTruncated><NextContinuationToken>x="
    "</NextContinuationToken><Contents><Key>a/b+c%2B1</Key><LastModified>2009-10-12T17:50:30.000Z"
    "</LastModified><Size>7</Size></Contents><CommonPrefixes><Prefix>a/</Prefix></CommonPrefixes>"
    "</ListBucketResult>",
    "<Error><Code>InvalidRange</Code><Message>&amp;</Message><ActualObjectSize>7</ActualObjectSize>"
    "<Region>eu-west-1</Region></Error>",
    "<InitiateMultipartUploadResult><UploadId>a.b</UploadId></InitiateMultipartUploadResult>",
    '{"AccessKeyId": "A", "SecretAccessKey": "S", "Token": "T", "Expiration": "2030-01-01T01:00:00Z"}',
    "[default]\nregion = x\ns3 =\n  endpoint_url = http://a\n[profile b]\naws_access_key_id=1\n",
    "s3://bucket//a///b/",
]


def payloads(file: bytes):
    """The payloads of a stream of records."""
    at = 0
    while at < len(file):
        (length,) = struct.unpack_from("<Q", file, at)
        yield file[at + HEADER_BYTES : at + HEADER_BYTES + length]
        at += HEADER_BYTES + length + FOOTER_BYTES


def write(target: str, inputs) -> None:
    """One numbered file per distinct input; files with names are kept."""
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("[0-9][0-9][0-9]"):
        old.unlink()
    for number, content in enumerate(dict.fromkeys(inputs)):
        (folder / f"{number:03d}").write_bytes(content)


def texts(pattern: str) -> list[bytes]:
    """The golden files of a pattern."""
    return [path.read_bytes() for path in sorted(GOLDEN.glob(pattern))]


def packed_seed(log: Path) -> bytes:
    """The entries of a log, each after its length, and the segment."""
    text = log.read_bytes()
    seed = b""
    while text:
        length = struct.unpack_from("<Q", text)[0]
        seed += struct.pack("<H", length) + text[HEADER_BYTES : HEADER_BYTES + length]
        text = text[HEADER_BYTES + length + FOOTER_BYTES :]
    segment = next((log.parents[2] / "seg").glob(f"*/{log.parent.name}/{log.name}"))
    return seed + b"\xff\xff" + segment.read_bytes()


def main() -> None:
    """Writes everything."""
    records = texts("types/events/*/*") + texts("hook/events/000000000000/*")
    boards = texts("hook/tensorboard/*/*.tfevents")[:1]
    write("tfrecord", [file[:2000] for file in records + boards])
    seen = [payload for file in records + boards for payload in payloads(file)]
    write("event", [payload for payload in seen if len(payload) < 1000][:80])
    write("index", texts("types/index/*/*")[:4] + [t.encode() for t in INDEXES])
    first = "000000000000_worker_0"
    write(
        "trial",
        [
            path.read_bytes()
            + b"\0"
            + (path.parents[2] / f"events/{first[:12]}/{first}.tfevents").read_bytes()
            for path in sorted(GOLDEN.glob(f"*/index/000000000/{first}.json"))
            if (path.parents[2] / f"events/{first[:12]}/{first}.tfevents").exists()
        ],
    )
    write(
        "packed_trial", [packed_seed(path) for path in sorted(GOLDEN.glob("packed/*/v2/log/*/*"))]
    )
    runs = zip(texts("types/index/*/*"), texts("types/events/*/*"), strict=True)
    write("verify", [index + SEPARATOR + events[:4000] for index, events in list(runs)[:4]])
    write("collections", texts("collections/collections/*/*") + [t.encode() for t in COLLECTIONS])
    write("config", [t.encode() for t in CONFIGS])
    write("s3", [t.encode() for t in S3])
    write("request", [t.encode() for t in REQUESTS])
    write("pattern", [f"{pattern}\n{name}".encode() for pattern, name in PATTERNS])


if __name__ == "__main__":
    main()
