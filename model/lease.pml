/* The lease of one row: claim, renew, re-enter, settle, lapse, proof of death, new store
 * incarnation. NW workers, each with at most BOOTS lives.
 *
 * Expiry may come at any moment: no clock is in the argument, so what holds here holds under
 * any skew, pause or jump. Answers may be lost, and what a dead worker sent may still arrive.
 * Each line that changes the row names the C function it mirrors. model/check runs this and
 * its mutants (-D…), which must be found. docs/internals/simulation.md says more.
 */
#ifndef NW
#define NW 2
#endif
#ifndef BOOTS
#define BOOTS 2
#endif
#ifndef LAPSES
#define LAPSES 1
#endif
#ifndef BUMPS
#define BUMPS 1
#endif
#ifndef ROUNDS
#define ROUNDS 1 /* executions that end without ending the row */
#endif
#define NONE 255

mtype = { queued, running, done, abandoned };
mtype status = queued;
byte owner = NONE, boot = 0; /* lease columns of the row: owner, owner_incarnation */
byte fence = 0, store = 0;   /* lease_fence, lease_incarnation */
byte sfence = 0, sstore = 0; /* settled_token */
bit asleep = 0;              /* the lease has lapsed */
byte inc = 1;                /* hf_store.incarnation */
byte lapses = 0, bumps = 0, rounds = 0;
byte life[NW];               /* the boot that each worker is in */
bit up[NW];

byte ends = 0, last = 0;     /* history: terminal events, fence of the last accepted write */
byte took[16];               /* history: accepted settles of each fence */

/* One request that a dead worker left on the wire. */
bit wire = 0; byte wfence, wstore, wowner, wboot;

#define MINE(me, b) (owner == me && boot == b && store == inc) /* hf_lease_mine */

inline accept(f, who, life_of) { /* the write itself, and what must be true of it */
    assert(f >= last); last = f; assert(owner == who && boot == life_of);
    took[f]++; assert(took[f] == 1)
}

/* hf_step_change: check_token, then hf_draft_close_out or hf_draft_hand_back; work_settle's WHERE
 * is the same comparison in SQL. `ok`: the caller is told that it is so. */
inline settle(f, s, who, life_of) {
    d_step {
        if
        :: sfence == f && sstore == s && f != 0 -> ok = 1          /* is_repeat */
        :: else ->
            if
#if defined(NOFENCE)
            :: status == running && store == s && inc == s ->
#elif defined(OLDSTORE)
            :: status == running && fence == f && store == s ->
#else
            :: status == running && fence == f && store == s && inc == s -> /* hf_lease_check */
#endif
                accept(f, who, life_of); assert(s == inc);
                sfence = f; sstore = s; owner = NONE; store = 0; asleep = 0; /* release */
                if
                :: rounds < ROUNDS -> rounds++; status = queued    /* hf_draft_hand_back */
                :: else -> status = done; ends++; assert(ends == 1) /* hf_draft_close_out */
                fi;
                ok = 1
            :: else -> ok = 0
            fi
        fi
    }
}

inline acquire(me, b) { /* hf_draft_acquire, work_claim */
#ifndef FENCEKEPT
    fence++;
#else
    if :: fence == 0 -> fence++ :: else fi;
#endif
    status = running; owner = me; boot = b; store = inc; asleep = 0
}

inline renew(f, s) { /* hf_lease_renewed behind hf_lease_check; work_renew */
    d_step {
        if
#ifdef RENEWBLIND
        :: status == running -> assert(fence == f && store == s); asleep = 0; ok = 1
#else
        :: status == running && fence == f && store == s && inc == s -> asleep = 0; ok = 1
#endif
        :: else -> ok = 0
        fi
    }
}

proctype worker(byte me) {
    byte b, f, s; bit ok; byte tries;
again:
    atomic { life[me]++; b = life[me]; up[me] = 1; f = 0; s = 0; ok = 0; tries = 0 }
    do
    :: status == done || status == abandoned -> break
    :: atomic { status == queued -> acquire(me, b); f = fence; s = store; tries = 0 };
       do
       :: tries < 1 -> tries++; renew(f, s); if :: ok :: else -> break fi
#ifdef OWNERONLY
       :: atomic { tries < 1 && status == running && owner == me && store == inc ->
#else
       :: atomic { tries < 1 && status == running && MINE(me, b) ->  /* hf_lease_reentered */
#endif
            tries++; assert(boot == b); f = fence; s = store }
       :: settle(f, s, me, b);
          if
          :: ok && tries < 2 -> tries = 2;                           /* the answer is lost: */
#ifdef BLINDRETRY
             settle(fence, store, me, b)
#else
             settle(f, s, me, b)                                       /* the same token again */
#endif
          :: skip
          fi; break
       :: atomic { b < BOOTS ->                                      /* kill -9 */
            up[me] = 0;
            if :: !wire -> wire = 1; wfence = f; wstore = s; wowner = me; wboot = b :: skip fi;
            goto again }
       od
#ifdef OWNERONLY
    :: atomic { status == running && owner == me && store == inc -> assert(boot == b); f = fence; s = store }
#endif
    od
}

/* What was sent by the dead arrives. */
active proctype network() {
    bit ok;
    do
    :: status == done || status == abandoned -> break
    :: wire -> settle(wfence, wstore, wowner, wboot); wire = 0
    od
}

/* hf_step_sweep: sweep_running, by any process at any time. */
active proctype sweeper() {
    do
    :: status == done || status == abandoned -> break
    :: d_step { status == running && !asleep && lapses < LAPSES -> lapses++; asleep = 1 }
#ifndef BOUND
    :: d_step { status == running && asleep ->                       /* rerun */
        status = queued; owner = NONE; store = 0; asleep = 0 }
#elif defined(TIMEENDS)
    :: d_step { status == running && asleep -> assert(boot != life[owner] || !up[owner]);
        status = abandoned; ends++ }
#endif
#ifdef PAUSEDISDEAD
    :: d_step { status == running && asleep ->
#else
    :: d_step { status == running && (boot != life[owner] || !up[owner]) -> /* hf_life_judge */
#endif
        assert(boot != life[owner] || !up[owner]);                   /* rule 5 */
#ifdef BOUND
        status = abandoned; ends++; assert(ends == 1);               /* abandon */
#else
        status = queued;
#endif
        owner = NONE; store = 0; asleep = 0 }
    od
}

/* sql_bump: old tokens are refused, but peers still wait for the lapse (rule 12). */
active proctype operator() {
    do
    :: status == done || status == abandoned -> break
    :: d_step { bumps < BUMPS -> bumps++; inc++ }
    :: d_step { bumps == BUMPS && status == running && store != inc && !asleep -> asleep = 1 }
    od
}

init { byte i = 0; atomic { do :: i < NW -> run worker(i); i++ :: else -> break od } }

/* Fair schedules end: nothing stays running or queued for ever. A bound row may. */
ltl ended { <> (status == done || status == abandoned) }
