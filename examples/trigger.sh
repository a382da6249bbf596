#!/bin/sh
# A webhook's half of a trigger: emit what came in, under the sender's own id, so that the
# sender may repeat it as often as it likes.
#
#   trigger.sh SOURCE_TYPE SOURCE_KEY DELIVERY_ID < payload.json
#
# HOLDFAST_DB names the store. Exit codes are those of holdfast: 6 and 8 ask to be repeated, 7
# says that the same id came with another payload.
set -eu
[ $# -eq 3 ] || { echo "usage: $0 SOURCE_TYPE SOURCE_KEY DELIVERY_ID < payload.json" >&2; exit 2; }
exec holdfast --json --actor "webhook:$1" trigger emit \
    --source-type "$1" --source-key "$2" --idempotency-key "$3" --payload -
