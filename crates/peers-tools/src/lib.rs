//! Per-tool adapters: command line, stream decoding, usage and failure signals. Pure.
