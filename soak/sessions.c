/* A process of the session soak: it sends messages to sessions, and claims, steps and commits
 * their turns, over the public API alone, until SIGTERM.
 *
 *   soak-sessions URL NAME FOLDER TTL_MS SESSIONS
 *
 * It writes to FOLDER/NAME.log what it is about to send and what it was told, one line per
 * event, before its next call. Once FOLDER/drain exists it sends nothing more. check_sessions.py
 * judges the logs and the tables.
 *
 *   W session text                   a send begins; its outcome is not known yet
 *   A session text before after      the send is acknowledged; times in nanoseconds
 *   C session fence head turn        claimed; turn "-": there is nothing to do
 *   P session fence turn step        a step is stored
 *   D session fence turn revision records chain repeated    committed, now or before
 *   B session fence turn             handed back
 *   F session fence -                released
 *   R session fence turn verb code   refused
 *
 * A turn over the message with the text T adds the records T#1, T#2 and so on, one per step and
 * one with the commit. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <holdfast/err.h>
#include <holdfast/session.h>
#include <holdfast/store.h>

#define AGENT "soak"
#define TEXT_BYTES 64
#define STEPS_MAX 3
#define TRIES 500

static volatile sig_atomic_t stopping;

struct self {
    struct hf_store *store;
    const char *name;
    const char *folder;
    hf_ms ttl_ms;
    unsigned sessions;
    unsigned sent;
    unsigned dice;
    int log;
};

/* A claimed session with its turn, as its holder knows it. */
struct talk {
    char session[32];
    char token[256];
    char turn[64];
    char text[TEXT_BYTES]; /* of the turn's message */
    long long fence;
    int64_t head_revision;
    int64_t record_count;
    int64_t step;
    int64_t node_count;
    uint8_t chain[32];
};

static void stop(int signal_number)
{
    (void)signal_number;
    stopping = 1;
}

static void pause_ms(long ms)
{
    struct timespec span = { ms / 1000, ms % 1000 * 1000000 };
    (void)nanosleep(&span, NULL);
}

static long long now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (long long)now.tv_sec * 1000000000 + now.tv_nsec;
}

static unsigned roll(struct self *self, unsigned n)
{
    self->dice = self->dice * 1103515245u + 12345u;
    return (self->dice >> 16) % n;
}

/* One write: a kill leaves the line whole, or leaves none of it. */
__attribute__((format(printf, 2, 3))) static void say(struct self *self,
                                                      const char *format, ...)
{
    char line[512];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    if (len <= 0 || (size_t)len >= sizeof(line) ||
        write(self->log, line, (size_t)len) != len)
        _exit(3);
}

/* Worth the same call again: the outcome is not known, or nothing was done. */
static bool again(int rc)
{
    return rc == HF_EBUSY || rc == HF_EUNCERTAIN || rc == HF_EUNREACHABLE;
}

static void refused(struct self *self, const struct talk *talk, const char *verb, int rc)
{
    say(self, "R %s %lld %s %s %s\n", talk->session, talk->fence, talk->turn, verb,
        hf_err_wire(rc));
}

/* ---- send ---------------------------------------------------------------------------- */

static int create(struct self *self, const char *session)
{
    struct hf_session_spec wanted = { .size = sizeof(wanted),
                                      .session_id = session,
                                      .agent = AGENT };
    struct hf_session_answer *answer = NULL;
    int rc = hf_session_create(self->store, NULL, &wanted, &answer, NULL);
    hf_session_answer_free(answer);
    return rc ? rc : HF_EBUSY; /* made: send again */
}

static void send_one(struct self *self)
{
    char session[32], text[TEXT_BYTES], message[300];
    struct hf_session_send wanted = { .size = sizeof(wanted),
                                      .session_id = session,
                                      .source_key = text,
                                      .message = message };
    struct hf_answer *answer = NULL;
    (void)snprintf(session, sizeof(session), "s%u", roll(self, self->sessions));
    (void)snprintf(text, sizeof(text), "%s-%u", self->name, self->sent++);
    (void)snprintf(message, sizeof(message),
                   "{\"kind\":\"message\",\"message\":{\"id\":\"m\",\"role\":\"user\","
                   "\"parts\":[{\"kind\":\"text\",\"content\":\"%s\"}]}}",
                   text);
    say(self, "W %s %s\n", session, text);
    long long before = now_ns();
    int rc = HF_EBUSY;
    for (int i = 0; again(rc) && i < TRIES; i++) {
        if (i > 0)
            pause_ms(10);
        rc = hf_session_send(self->store, NULL, &wanted, &answer, NULL);
        if (rc == HF_ENOTFOUND)
            rc = create(self, session);
    }
    if (rc == 0)
        say(self, "A %s %s %lld %lld\n", session, text, before, now_ns());
    else
        say(self, "R %s 0 - send %s\n", session, hf_err_wire(rc));
    hf_answer_free(answer);
}

/* ---- a turn -------------------------------------------------------------------------- */

/* The n-th record of a turn over the message `text`, whose parts the caller lends. */
struct lent {
    char text[TEXT_BYTES + 24];
    struct hf_part part;
    struct hf_message message;
};

static struct hf_record make_record(struct lent *lent, const struct talk *talk)
{
    (void)snprintf(lent->text, sizeof(lent->text), "%s#%lld", talk->text,
                   (long long)talk->node_count + 1);
    lent->part = (struct hf_part){ .content = { lent->text, strlen(lent->text) } };
    lent->message = (struct hf_message){
        .id = "m", .role = HF_ROLE_ASSISTANT, .parts = &lent->part, .part_count = 1
    };
    return (struct hf_record){ .kind = HF_RECORD_MESSAGE, .message = &lent->message };
}

static int step(struct self *self, struct talk *talk)
{
    struct lent lent;
    struct hf_record record = make_record(&lent, talk);
    struct hf_session_step wanted = { .size = sizeof(wanted),
                                      .session_id = talk->session,
                                      .token = talk->token,
                                      .turn_id = talk->turn,
                                      .step = talk->step,
                                      .node_count = talk->node_count,
                                      .chain = talk->chain,
                                      .records = &record,
                                      .record_count = 1,
                                      .save = { lent.text, strlen(lent.text) } };
    struct hf_session_stepped stepped;
    int rc = HF_EBUSY;
    for (int i = 0; again(rc) && i < TRIES; i++)
        rc = hf_session_step(self->store, NULL, &wanted, &stepped, NULL);
    if (rc) {
        refused(self, talk, "step", rc);
        return rc;
    }
    talk->step = stepped.step;
    talk->node_count = stepped.node_count;
    memcpy(talk->chain, stepped.chain, sizeof(talk->chain));
    say(self, "P %s %lld %s %lld\n", talk->session, talk->fence, talk->turn,
        (long long)talk->step);
    return 0;
}

static void commit(struct self *self, struct talk *talk)
{
    struct lent lent;
    struct hf_record record = make_record(&lent, talk);
    struct hf_session_commit wanted = { .size = sizeof(wanted),
                                        .session_id = talk->session,
                                        .token = talk->token,
                                        .turn_id = talk->turn,
                                        .head_revision = talk->head_revision,
                                        .record_count = talk->record_count,
                                        .step = talk->step,
                                        .node_count = talk->node_count,
                                        .chain = talk->chain,
                                        .records = &record,
                                        .added_count = 1,
                                        .status = HF_STATUS_DONE,
                                        .outcome = "{\"kind\":\"assistant_message\"}",
                                        .release = true };
    struct hf_session_committed done;
    char chain[65];
    int rc = HF_EBUSY;
    for (int i = 0; again(rc) && i < TRIES; i++)
        rc = hf_session_commit(self->store, NULL, &wanted, &done, NULL);
    if (rc) {
        refused(self, talk, "commit", rc);
        return;
    }
    for (size_t i = 0; i < 32; i++)
        (void)snprintf(chain + 2 * i, 3, "%02x", done.chain[i]);
    say(self, "D %s %lld %s %lld %lld %s %d\n", talk->session, talk->fence, talk->turn,
        (long long)done.head_revision, (long long)done.record_count, chain,
        done.repeated);
}

static void hand_back(struct self *self, struct talk *talk)
{
    struct hf_session_back wanted = { .size = sizeof(wanted),
                                      .session_id = talk->session,
                                      .token = talk->token };
    int rc = HF_EBUSY;
    for (int i = 0; again(rc) && i < TRIES; i++)
        rc = hf_session_hand_back(self->store, NULL, &wanted, NULL);
    if (rc)
        refused(self, talk, "hand_back", rc);
    else
        say(self, "B %s %lld %s\n", talk->session, talk->fence, talk->turn);
}

static void release(struct self *self, struct talk *talk)
{
    int rc = HF_EBUSY;
    for (int i = 0; again(rc) && i < TRIES; i++)
        rc = hf_session_release(self->store, NULL, talk->session, talk->token, NULL);
    if (rc)
        refused(self, talk, "release", rc);
    else
        say(self, "F %s %lld -\n", talk->session, talk->fence);
}

static int renew(struct self *self, struct talk *talk)
{
    struct hf_session_renewal one = { .session_id = talk->session, .token = talk->token };
    int rc = HF_EBUSY;
    for (int i = 0; again(rc) && i < TRIES; i++)
        rc = hf_session_renew_all(self->store, &one, 1, NULL);
    rc = rc ? rc : one.code;
    if (rc)
        refused(self, talk, "renew", rc);
    return rc;
}

/* Some steps that take time, then an end. A holder that was refused stops, except sometimes:
 * then its commit must be refused too. */
static void work_on(struct self *self, struct talk *talk)
{
    unsigned fate = roll(self, 100);
    int rc = 0;
    /* Long enough that the holder before this one may wake up meanwhile. */
    pause_ms(roll(self, 4) == 0 ? (long)roll(self, 600) : 0);
    for (unsigned n = roll(self, STEPS_MAX + 1); rc == 0 && n > 0; n--) {
        rc = step(self, talk);
        pause_ms((long)roll(self, 30));
        if (rc == 0 && roll(self, 3) == 0)
            rc = renew(self, talk);
    }
    if (rc && fate < 50)
        return;
    if (fate < 90)
        commit(self, talk);
    else
        hand_back(self, talk);
}

/* ---- claim ---------------------------------------------------------------------------- */

/* The text of the message that begins the turn. Its JSON is this program's own. */
static void read_text(const struct hf_session_turn *turn, char text[TEXT_BYTES])
{
    static const char mark[] = "\"content\":\"";
    const char *at = turn->input_count ? strstr(turn->inputs[0].payload, mark) : NULL;
    size_t len = at ? strcspn(at + sizeof(mark) - 1, "\"") : 0;
    (void)snprintf(text, TEXT_BYTES, "%.*s", (int)len, at ? at + sizeof(mark) - 1 : "");
}

static struct talk remember(const struct hf_session_answer *answer)
{
    const struct hf_session *session = answer->sessions;
    const struct hf_session_turn *turn = answer->turn;
    struct talk talk = { .turn = "-",
                         .fence = session->lease_fence,
                         .head_revision = session->head_revision,
                         .record_count = session->record_count };
    (void)snprintf(talk.session, sizeof(talk.session), "%s", session->session_id);
    (void)snprintf(talk.token, sizeof(talk.token), "%s", answer->token);
    if (turn) {
        (void)snprintf(talk.turn, sizeof(talk.turn), "%s", turn->turn_id);
        read_text(turn, talk.text);
        talk.step = turn->step;
        talk.node_count = turn->node_count;
        memcpy(talk.chain, turn->chain, sizeof(talk.chain));
    }
    return talk;
}

/* Half of the leases tell which process holds them; the others must lapse. */
static bool claim_one(struct self *self)
{
    static const char *const agents[] = { AGENT };
    char session[32];
    struct hf_session_claim wanted = { .size = sizeof(wanted),
                                       .agents = agents,
                                       .agent_count = 1,
                                       .pid = roll(self, 2) ? getpid() : 0,
                                       .ttl_ms = self->ttl_ms };
    struct hf_session_answer *answer = NULL;
    (void)snprintf(session, sizeof(session), "s%u", roll(self, self->sessions));
    if (roll(self, 8) == 0) {
        wanted.session_id = session;
        wanted.agent_count = 0;
    }
    int rc = hf_session_claim(self->store, NULL, &wanted, &answer, NULL);
    bool found = rc == 0 && answer->session_count > 0;
    if (found) {
        struct talk talk = remember(answer);
        say(self, "C %s %lld %lld %s\n", talk.session, talk.fence,
            (long long)talk.head_revision, talk.turn);
        if (answer->turn)
            work_on(self, &talk);
        else
            release(self, &talk);
    } else if (rc && !again(rc) && rc != HF_ESESSIONBUSY && rc != HF_ENOTFOUND) {
        say(self, "R %s 0 - claim %s\n", wanted.session_id ? session : "-",
            hf_err_wire(rc));
    }
    hf_session_answer_free(answer);
    return found;
}

static void run(struct self *self)
{
    char drain[512];
    (void)snprintf(drain, sizeof(drain), "%s/drain", self->folder);
    while (!stopping) {
        if (access(drain, F_OK) != 0)
            send_one(self);
        if (!claim_one(self))
            pause_ms(10);
    }
}

int main(int argc, char **argv)
{
    struct hf_err err = { 0 };
    char path[512];
    if (argc != 6) {
        (void)fprintf(stderr, "usage: soak-sessions URL NAME FOLDER TTL_MS SESSIONS\n");
        return 2;
    }
    struct self self = { .name = argv[2],
                         .folder = argv[3],
                         .ttl_ms = strtol(argv[4], NULL, 10),
                         .sessions = (unsigned)strtoul(argv[5], NULL, 10),
                         .dice = (unsigned)getpid() };
    struct sigaction act = { .sa_handler = stop };
    (void)sigaction(SIGTERM, &act, NULL);
    (void)snprintf(path, sizeof(path), "%s/%s.log", argv[3], argv[2]);
    self.log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (self.log < 0 || self.ttl_ms <= 0 || self.sessions == 0) {
        (void)fprintf(stderr, "soak-sessions: %s: %s\n", path, strerror(errno));
        return 1;
    }
    int rc = HF_EBUSY;
    for (int i = 0; i < TRIES && rc && !stopping; i++) {
        rc = hf_store_open(argv[1], NULL, &self.store, &err);
        if (rc)
            pause_ms(20);
    }
    if (rc) {
        (void)fprintf(stderr, "soak-sessions: %s\n", err.message);
        return stopping ? 0 : 1;
    }
    run(&self);
    hf_store_close(self.store);
    return 0;
}
