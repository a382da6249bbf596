/* Claims that are pinned to a session's generation: NW workers, one session of NTURN turns.
 * A worker takes the session's lease, claims the waiting input under the lease's fence, and
 * commits the turn under fence and head; the input is settled in the same commit. Who comes
 * after a lapse claims the same input again under its own fence.
 *
 * The session's lease is src/core/ledger/lease.c as today; pinned claims and the commit are those of
 * the durable-state contract (G1, G2), which the ledger keeps columns for. Expiry may come at any
 * moment. Mutants: NOFENCE, NOHEAD, UNPINNED. */
#ifndef NW
#define NW 2
#endif
#ifndef NTURN
#define NTURN 2
#endif
#define NONE 255
#define LAPSES 3

byte owner = NONE, fence = 0; /* session: lease columns */
byte head = 0;                /* session: turns committed */
byte pin[NTURN];              /* work row i: session_fence under which it is claimed */
byte settled[NTURN];          /* work row i: commits that settled it */
byte by[NTURN];               /* history: fence that committed turn i */
byte lapses = 0;

inline commit(f, base) { /* lease fence and head, one transaction; settles row `base` */
    d_step {
        if
#if defined(NOFENCE)
        :: head == base && head < NTURN ->
#elif defined(NOHEAD)
        :: owner != NONE && fence == f && head < NTURN ->
#elif defined(UNPINNED)
        :: owner != NONE && fence == f && head == base && head < NTURN ->
#else
        :: owner != NONE && fence == f && head == base && head < NTURN && pin[head] == f ->
#endif
            assert(pin[head] == fence && f == fence);
            settled[head]++; assert(settled[head] == 1);
            by[head] = f; assert(head == base);
            if :: head > 0 -> assert(by[head] >= by[head - 1]) :: else fi;
            head++; ok = 1
        :: else -> ok = 0
        fi
    }
}

proctype worker(byte me) {
    byte f, base; bit ok;
    do
    :: head >= NTURN -> break
    :: atomic { head < NTURN && owner == NONE -> fence++; owner = me; f = fence }; /* hf_lease_claim */
       do
       :: head >= NTURN -> break
       :: atomic { owner == me && fence == f && head < NTURN ->        /* claim of the batch */
#ifndef UNPINNED
            pin[head] = f;
#else
            if :: pin[head] == 0 -> pin[head] = f :: else fi;
#endif
            base = head };
          commit(f, base);
          if
          :: ok -> /* the answer may be lost: the same base again does nothing */
             commit(f, base)
          :: else -> break
          fi
       :: else -> break                                                /* the lease is gone */
       od;
       atomic { if :: owner == me && fence == f -> owner = NONE :: else fi } /* hf_lease_released */
    od
}

active proctype lapse() {
    do
    :: head >= NTURN -> break
    :: d_step { owner != NONE && lapses < LAPSES -> lapses++; owner = NONE }
    od
}

init { byte i = 0; atomic { do :: i < NW -> run worker(i); i++ :: else -> break od } }

ltl ended { <> (head == NTURN) }
