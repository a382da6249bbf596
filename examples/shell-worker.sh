#!/bin/sh
# shell-worker.sh QUEUE COMMAND [ARG]...
#
# A worker: takes units from QUEUE and runs COMMAND with the payload on its standard input, and with
# HOLDFAST_WORK_ID and HOLDFAST_LEASE_TOKEN in its environment: `holdfast work append-event` needs no
# more. The lease lives as long as COMMAND does, even if this shell is killed, so no unit runs twice at
# a time. SIGTERM ends the worker: COMMAND is ended too, and its unit handed back. A claim that waits
# is not interrupted: what it takes after the signal is handed back, and not run.
queue=$1 stop='' job='' && shift
hold() { holdfast work "$@" --quiet --id "$HF_WORK_ID" --token "$HF_LEASE_TOKEN"; }
# Busy, or not known whether it was done: the same again, which is never done twice.
settle() { until hold "$@"; do case $? in 6 | 8) sleep 1 ;; *) return 1 ;; esac; done; }
# A lost lease takes the right to go on.
keep() {
    while sleep $((HF_LEASE_TTL_MS / 4000 + 1)) && kill -0 "$job"; do
        hold renew || case $? in 6 | 8) ;; *) kill "$job" ;; esac
    done
}
trap 'stop=1; kill $job 2>/dev/null' TERM INT
while [ -z "$stop" ] && out=$(holdfast work claim --owner "sh-$$" --queue "$queue" --wait 5s --shell); do
    if eval "$out" && [ -z "$HF_WORK_ID" ]; then continue; fi
    if [ -n "$stop" ]; then settle hand-back --reason 'the worker was told to end'; break; fi
    printf '%s' "$HF_PAYLOAD" | HOLDFAST_WORK_ID=$HF_WORK_ID HOLDFAST_LEASE_TOKEN=$HF_LEASE_TOKEN "$@" & job=$!; [ -z "$stop" ] || kill "$job" # told just before
    keep >/dev/null 2>&1 & keeper=$!; wait "$job"; code=$?
    while kill -0 "$job" 2>/dev/null; do sleep 1; done; kill "$keeper"; job='' # a signal ends a wait
    case $code in 0) settle close-out --status 'done' ;;
    143) settle hand-back --reason 'ended by a signal' ;;
    *) settle fail --class service_unavailable --reason "exit code $code" ;;
    esac
done
