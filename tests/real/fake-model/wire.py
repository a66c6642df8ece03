"""The wire formats of the scripted model: one assistant message, or one error, in the shapes of the
Anthropic Messages, the OpenAI Responses and the OpenAI Chat Completions API.  Used by server.py."""
import json
import time


class Reply:
    """One assistant message, a text and/or tool calls [(id, name, arguments)], in the API of the
    request: full() is the JSON body, events() the stream as [(event name or None, data)]."""

    def __init__(self, req, text, calls):
        self.req, self.text, self.calls = req, text, calls
        size = len(text) + sum(len(json.dumps(call[2])) for call in calls)
        self.tokens_in = max(1, len(json.dumps(req.body)) // 4)
        self.tokens_out = max(1, size // 4)
        self.id, self.now = "fake%d" % time.monotonic_ns(), int(time.time())
        piece = max(1, min(4096, len(text) // 4 + 1))
        self.pieces = [text[i:i + piece] for i in range(0, len(text), piece)]
        self.full = getattr(self, "full_" + req.api)
        self.events = getattr(self, "events_" + req.api)

    def full_anthropic(self):
        blocks = [{"type": "text", "text": self.text}] if self.text else []
        blocks += [{"type": "tool_use", "id": "toolu_" + i, "name": name, "input": args}
                   for i, name, args in self.calls]
        return {"id": "msg_" + self.id, "type": "message", "role": "assistant",
                "model": self.req.model, "content": blocks, "stop_sequence": None,
                "stop_reason": "tool_use" if self.calls else "end_turn",
                "usage": {"input_tokens": self.tokens_in, "output_tokens": self.tokens_out,
                          "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}}

    def events_anthropic(self):
        message = self.full()
        out = [{"type": "message_start", "message": dict(
            message, content=[], stop_reason=None, usage=dict(message["usage"], output_tokens=1))}]
        for i, block in enumerate(message["content"]):
            if block["type"] == "text":
                empty = dict(block, text="")
                deltas = [{"type": "text_delta", "text": p} for p in self.pieces]
            else:
                empty = dict(block, input={})
                deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
            out.append({"type": "content_block_start", "index": i, "content_block": empty})
            out += [{"type": "content_block_delta", "index": i, "delta": d} for d in deltas]
            out.append({"type": "content_block_stop", "index": i})
        out.append({"type": "message_delta", "usage": {"output_tokens": self.tokens_out},
                    "delta": {"stop_reason": message["stop_reason"], "stop_sequence": None}})
        return [(e["type"], e) for e in out + [{"type": "message_stop"}]]

    def full_responses(self):
        items = [{"type": "message", "id": "msg_" + self.id, "role": "assistant",
                  "status": "completed", "content": [
                      {"type": "output_text", "text": self.text, "annotations": []}]}]
        items = (items if self.text else []) + [
            {"type": "function_call", "id": "fc_" + i, "call_id": "call_" + i, "name": name,
             "arguments": json.dumps(args), "status": "completed"} for i, name, args in self.calls]
        return {"id": "resp_" + self.id, "object": "response", "status": "completed",
                "model": self.req.model, "created_at": self.now, "output": items,
                "usage": {"input_tokens": self.tokens_in, "output_tokens": self.tokens_out,
                          "input_tokens_details": {"cached_tokens": 0},
                          "output_tokens_details": {"reasoning_tokens": 0},
                          "total_tokens": self.tokens_in + self.tokens_out}}

    def events_responses(self):
        full = self.full()
        out = [{"type": "response.created",
                "response": dict(full, status="in_progress", output=[], usage=None)}]
        for i, item in enumerate(full["output"]):
            is_text = item["type"] == "message"
            begun = {"content": []} if is_text else {"arguments": ""}
            out.append({"type": "response.output_item.added", "output_index": i,
                        "item": dict(item, status="in_progress", **begun)})
            out += [{"type": "response.output_text.delta", "item_id": item["id"], "delta": p,
                     "output_index": i, "content_index": 0} for p in self.pieces if is_text]
            out.append({"type": "response.output_item.done", "output_index": i, "item": item})
        out.append({"type": "response.completed", "response": full})
        return [(e["type"], dict(e, sequence_number=n)) for n, e in enumerate(out)]

    def full_chat(self):
        message = {"role": "assistant", "content": self.text or None}
        if self.calls:
            message["tool_calls"] = [
                {"index": n, "id": "call_" + i, "type": "function",
                 "function": {"name": name, "arguments": json.dumps(args)}}
                for n, (i, name, args) in enumerate(self.calls)]
        return {"id": "chatcmpl-" + self.id, "object": "chat.completion", "created": self.now,
                "model": self.req.model,
                "choices": [{"index": 0, "message": message,
                             "finish_reason": "tool_calls" if self.calls else "stop"}],
                "usage": {"prompt_tokens": self.tokens_in, "completion_tokens": self.tokens_out,
                          "total_tokens": self.tokens_in + self.tokens_out,
                          "prompt_tokens_details": {"cached_tokens": 0},
                          "completion_tokens_details": {"reasoning_tokens": 0}}}

    def events_chat(self):
        full = self.full()
        message, base = full["choices"][0]["message"], dict(full, object="chat.completion.chunk")
        usage, end = base.pop("usage"), full["choices"][0]["finish_reason"]
        deltas = [{"role": "assistant", "content": ""}] + [{"content": p} for p in self.pieces]
        if self.calls:
            deltas.append({"tool_calls": message["tool_calls"]})
        choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
        choices.append({"index": 0, "delta": {}, "finish_reason": end})
        out = [dict(base, choices=[choice]) for choice in choices]
        out.append(dict(base, choices=[], usage=usage))
        return [(None, e) for e in out] + [(None, "[DONE]")]


def error_body(api, message):
    """The body of a 404 in the shape that the real service of that API uses."""
    if api == "anthropic":
        return {"type": "error", "request_id": "req_fake",
                "error": {"type": "not_found_error", "message": message}}
    return {"error": {"message": message, "type": "invalid_request_error", "param": None,
                      "code": None}}
