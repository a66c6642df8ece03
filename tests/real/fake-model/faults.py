"""What goes wrong on purpose: the faults of a scripted turn, in the shapes of the real services.

A fault stands in a turn of the scenario: {"kind": KIND, "at": STEP, "times": N, ...}.  It is served at
that step (0, the default, is the first request, n the one after n answered calls), N times (default:
for ever).

    auth           401
    rate_limit     429; "retry_after": seconds
    overloaded     529
    quota          no credit is left: 400 of Anthropic, 429 of OpenAI
    plan           the window of the subscription is used up: 429; "resets_in": seconds
    hang           silence, not even a status line
    stall          the first event of an answer, then silence
    cut            half of the answer, then the connection is closed
    broken_body    200, and a body that is no JSON and no stream
    broken_event   an answer with one event that is no JSON
"""
import time

STREAM = ("stall", "cut", "broken_event")     # spoil an answer that has begun
KINDS = ("auth", "rate_limit", "overloaded", "quota", "plan", "hang", "broken_body", *STREAM)

ANTHROPIC = {   # kind: (status, type, message)
    "auth": (401, "authentication_error", "invalid x-api-key"),
    "rate_limit": (429, "rate_limit_error",
                   "This request would exceed the rate limit of your organization."),
    "overloaded": (529, "overloaded_error", "Overloaded"),
    "quota": (400, "invalid_request_error",
              "Your credit balance is too low to access the Anthropic API. "
              "Please go to Plans & Billing to upgrade or purchase credits."),
    "plan": (429, "rate_limit_error",
             "This request would exceed your account's rate limit. Please try again later."),
}
OPENAI = {      # kind: (status, type, code, message)
    "auth": (401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    "rate_limit": (429, "requests", "rate_limit_exceeded", "Rate limit reached for requests."),
    "overloaded": (529, "server_error", "overloaded", "The server is overloaded."),
    "quota": (429, "insufficient_quota", "insufficient_quota",
              "You exceeded your current quota, please check your plan and billing details."),
    "plan": (429, "usage_limit_reached", None, "The usage limit has been reached"),
}


def check(fault):
    """Complains about a fault that this file does not know."""
    if fault.get("kind") not in KINDS:
        raise ValueError("no such fault: %r" % (fault,))


def refusal(api, fault):
    """Status, headers and body of a refused request."""
    kind, headers = fault["kind"], {}
    resets_at = int(time.time()) + fault.get("resets_in", 5400)
    if "retry_after" in fault:
        headers["retry-after"] = fault["retry_after"]
    if api == "anthropic":
        status, type_, message = ANTHROPIC[kind]
        if kind == "plan":
            headers.update({"anthropic-ratelimit-unified-status": "rejected",
                            "anthropic-ratelimit-unified-representative-claim": "five_hour",
                            "anthropic-ratelimit-unified-reset": resets_at,
                            "anthropic-ratelimit-unified-overage-status": "rejected"})
        return status, headers, {"type": "error", "request_id": "req_fake",
                                 "error": {"type": type_, "message": message}}
    status, type_, code, message = OPENAI[kind]
    error = {"message": message, "type": type_, "param": None, "code": code}
    if kind == "plan":
        error.update(plan_type="plus", resets_at=resets_at,
                     resets_in_seconds=fault.get("resets_in", 5400))
    return status, headers, {"error": error}
