#!/bin/bash
# A worker of the outside soak in shell: claims one unit at a time, and closes it, fails it or hands
# it back. Every call has an id of its own, which is its reason and its correlation id. The log has
# the form that outside_worker.py describes.
#
#   outside_worker.sh HOLDFAST URL NAME FOLDER TTL_MS [drain]
set -u
program=$1 url=$2 name=$3 folder=$4 ttl=$5 drain=${6:-}
log=$folder/$name.calls
calls=0

# ask VERB WORK FENCE ARG…: the answer's variables are in $out, the exit code is returned.
ask() {
    local verb=$1 quoted=${2:+\"$2\"} fence=$3 rc try
    shift 3
    for try in 1 2 3; do
        printf '{"call":"%s","verb":"%s","work":%s,"fence":%s,"pid":true,"wants":%s,"begin":%s}\n' \
            "$call" "$verb" "${quoted:-null}" "${fence:-null}" "$wants" "$EPOCHREALTIME" >>"$log"
        out=$("$program" --db "$url" --correlation-id "$call" work "$verb" "$@" --shell 2>/dev/null)
        rc=$?
        [ $rc -le 128 ] || rc=$((128 - rc)) # ended by a signal: as Python says it
        printf '{"call":"%s","end":%s,"rc":%d,"told":%s}\n' "$call" "$EPOCHREALTIME" $rc \
            "$([ $rc -eq 0 ] && told || echo null)" >>"$log"
        case $rc in 6 | 8) sleep 0.1 ;; *) return $rc ;; esac
    done
    return $rc
}

# told: what the answer says, as the judge needs it.
told() (
    eval "$out"
    if [ -z "$HF_WORK_ID" ]; then
        echo '[]'
        return
    fi
    printf '[{"work":"%s","status":"%s","fence":%d,"expires":%s,"generation":%d}]' "$HF_WORK_ID" \
        "$HF_STATUS" "$HF_LEASE_FENCE" "${HF_LEASE_EXPIRES_AT:-null}" "$HF_GENERATION"
)

next() {
    calls=$((calls + 1))
    call=$name-$calls
    wants=null
}

while kill -0 "$PPID" 2>/dev/null; do # the driver is there
    if [ -z "$drain" ] && [ $((RANDOM % 3)) -eq 0 ]; then
        next
        ask create '' '' --source manual --source-id "$call" --disposition rerunnable \
            --retry-policy '{"initial_backoff_ms":50,"max_backoff_ms":200,"max_attempts":4}'
    fi
    next
    ask claim '' '' --owner "$name" --incarnation "$name" --nonce "$call" --ttl "${ttl}ms" --pid $$ || continue
    eval "$out"
    if [ -z "$HF_WORK_ID" ]; then
        sleep 0.05
        continue
    fi
    work=$HF_WORK_ID fence=$HF_LEASE_FENCE token=$HF_LEASE_TOKEN
    next
    case $drain$((RANDOM % 8)) in
    0) ask hand-back "$work" "$fence" "$work" --token "$token" --reason "$call" ;;
    1) ask fail "$work" "$fence" "$work" --token "$token" --class transient_network --reason "$call" ;;
    *)
        wants='"done"'
        ask close-out "$work" "$fence" "$work" --token "$token" --status 'done' --reason "$call"
        ;;
    esac
done
