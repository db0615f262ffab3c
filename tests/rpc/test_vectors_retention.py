"""Every case of vectors/retention.json as a Prepare under exactly that budget."""

from __future__ import annotations

from typing import Any

import grpc
from golden.vector_cases import each_case, load_vectors
from rpc.context_text import read_context
from rpc.failures import Failure, failure_of
from rpc.vector_rig import VectorRig, capture_of, in_module_loop, stats_of
from sessionref.v1 import reference_pb2
from sessionref.v1.session_reference_service_pb2 import PrepareRequest
from sessionref_server.service.prepare import PrepareLimits


@in_module_loop
@each_case(load_vectors("retention"))
async def test_retention_vector_gives_its_output(rig: VectorRig, case: dict[str, Any]) -> None:
    given = case["input"]
    session = given["snapshot"]["session"]
    rig.source.fill([], [capture_of(session, given["snapshot"])])
    stub = await rig.stub(limits=PrepareLimits(max_reference_bytes=given["maxBytes"]), spill=False)
    request = PrepareRequest(
        target=reference_pb2.Target(session_id="me"),
        references=[reference_pb2.SessionReferenceInput(session_id=session["id"], label=given["label"])],
    )
    call = stub.Prepare(request, timeout=20)
    if "error_code" in case:
        assert await failure_of(call) == Failure(
            code=grpc.StatusCode.FAILED_PRECONDITION,
            reason=case["error_code"],
            metadata={"session_id": session["id"], "maximum_bytes": str(given["maxBytes"])},
        )
        return
    context = (await call).additional_context
    text = read_context(context)
    stats = stats_of(context.source.references[0])
    assert {"data": text.previews[0], "stats": stats, "bytes": text.previews_bytes - len("[]")} == case["output"]
    assert len(text.previews) == 1
    assert (text.notices is not None) == stats["truncated"] == bool(context.omissions)
