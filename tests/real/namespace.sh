#!/usr/bin/env bash
# Runs a command in a fresh network namespace, where loopback is down at first: namespace.sh COMMAND...
# No `ip` is needed for that.
set -euo pipefail
python3 - <<'PYTHON'
import fcntl, socket, struct
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    ask = struct.pack("16sh14x", b"lo", 0)
    flags = struct.unpack("16sh14x", fcntl.ioctl(s, SIOCGIFFLAGS, ask))[1]
    if not flags & IFF_UP:
        fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | IFF_UP))
PYTHON
printf 'network interfaces: %s\n' "$(tail -n +3 /proc/net/dev | cut -d: -f1 | xargs)"
exec "$@"
