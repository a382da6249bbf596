/* holdfast demo: the director. Starts the parts, tells their story as they report it, kills
 * one of them, and lets the ledger have the last word.
 *
 * Nothing here waits for time to pass: each act begins when a report says that the one
 * before is over. All processes are forked before a store is opened, since a handle does not
 * outlive a fork. However it ends, no child is left. */
#include "cli/demo/demo.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json_get.h"
#include "base/text.h"

#define PATH_ROOM 512
#define MOST_MS 18000 /* a story that takes longer has gone wrong */
#define END_MS 2000   /* for the parts to end by themselves */
#define STEP_TTY_MS 350
#define STEP_MS 10

struct part {
    pid_t pid; /* 0: not started, or gone */
    int tell;
};

struct demo {
    struct cli *cli;
    char folder[PATH_ROOM];
    char ledger[PATH_ROOM + 16];
    struct part parts[DEMO_PARTS];
    int reports; /* read end */
    int reports_in;
    int signals;
    int signal_seen;
    sigset_t old_mask;
    hf_ms began; /* monotonic */
    size_t done; /* reports of DEMO_DONE */
    bool ending;
    enum demo_who victim;
    struct demo_facts facts;
    struct demo_agent agent;
};

static const char *const part_names[DEMO_PARTS] = { "submitter", "worker-1", "worker-2",
                                                    "monitor" };
#define X(name, text) (text),
static const char *const wordings[DEMO_REPORT_COUNT] = { DEMO_REPORTS(X) };
#undef X
static const enum cli_colour part_colours[DEMO_PARTS] = { CLI_DIM, CLI_BLUE, CLI_GREEN,
                                                          CLI_YELLOW };

static hf_ms now_ms(void)
{
    return hf_clock_system()->mono_ms(hf_clock_system()->user);
}

static int failed(struct demo *demo, const char *what)
{
    return hf_fail(&demo->cli->err, HF_EINTERNAL, NULL, "%s: %s", what, strerror(errno));
}

/* ---- telling ----------------------------------------------------------------------- */

/* One line of the story, at once. */
static int tell(struct demo *demo, const char *who, enum cli_colour colour,
                const char *text)
{
    struct cli *cli = demo->cli;
    if (cli->json || cli->quiet)
        return 0;
    cli_putf(cli, "%7.3f s  ", (double)(now_ms() - demo->began) / 1000.0);
    cli_colour(cli, colour);
    cli_putf(cli, "%-10s", who);
    cli_colour(cli, CLI_PLAIN);
    cli_put_clean(cli, text);
    cli_put(cli, "\n");
    return cli_flush(cli);
}

static int tell_report(struct demo *demo, const struct demo_message *message)
{
    char line[400];
    const char *wording = wordings[message->report];
    const char *gap = strstr(wording, "%s");
    const char *next = strstr(gap + 2, "%s");
    (void)snprintf(line, sizeof(line), "%.*s%s%.*s%s%s", (int)(gap - wording), wording,
                   message->task, (int)(next - gap - 2), gap + 2, message->text,
                   next + 2);
    return tell(demo, part_names[message->who], part_colours[message->who], line);
}

/* ---- the folder -------------------------------------------------------------------- */

static bool folder_empty(const char *path)
{
    DIR *dir = opendir(path);
    size_t entries = 0;
    while (dir && readdir(dir))
        entries++;
    if (dir)
        (void)closedir(dir);
    return dir && entries == 2; /* itself and its parent */
}

static int make_folder(struct demo *demo)
{
    struct cli *cli = demo->cli;
    const char *given = cli_text(cli, "folder"), *base = getenv("TMPDIR");
    base = base && *base ? base : "/tmp";
    int n = given ? snprintf(demo->folder, PATH_ROOM, "%s", given)
                  : snprintf(demo->folder, PATH_ROOM, "%s/holdfast-demo-XXXXXX", base);
    if (n < 0 || n >= PATH_ROOM)
        return hf_fail(&cli->err, HF_EINVAL, "--folder",
                       "--folder: the path is too long");
    bool made = given ? mkdir(demo->folder, 0700) == 0 : mkdtemp(demo->folder) != NULL;
    if (!made && !(given && errno == EEXIST)) {
        int code = errno;
        demo->folder[0] = '\0';
        cli->action = "name a writable folder with --folder, or set TMPDIR";
        return hf_fail(&cli->err, HF_EINVAL, "--folder",
                       "cannot create a folder in %.120s: %s", given ? given : base,
                       strerror(code));
    }
    if (!made && !folder_empty(demo->folder)) {
        demo->folder[0] = '\0'; /* not ours to remove */
        return hf_fail(&cli->err, HF_EINVAL, "--folder",
                       "--folder must name an empty folder, or one that does not exist");
    }
    (void)snprintf(demo->ledger, sizeof(demo->ledger), "%s/ledger.db", demo->folder);
    return 0;
}

/* A folder of files. What cannot be removed makes the folder's removal fail. */
static void remove_folder(const struct demo *demo)
{
    DIR *dir = opendir(demo->folder);
    for (struct dirent *at; dir && (at = readdir(dir));)
        if (!hf_same(at->d_name, ".") && !hf_same(at->d_name, ".."))
            (void)unlinkat(dirfd(dir), at->d_name, 0);
    if (dir)
        (void)closedir(dir); /* nothing of ours was written */
    if (rmdir(demo->folder))
        cli_note(demo->cli, "cannot remove %s: %s", demo->folder, strerror(errno));
}

/* ---- the parts --------------------------------------------------------------------- */

static int take_signals(struct demo *demo)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGCHLD);
    int ends[2];
    if (sigprocmask(SIG_BLOCK, &set, &demo->old_mask) != 0)
        return failed(demo, "sigprocmask");
    demo->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (demo->signals < 0)
        return failed(demo, "signalfd");
    if (pipe2(ends, O_CLOEXEC) != 0)
        return failed(demo, "pipe");
    demo->reports = ends[0];
    demo->reports_in = ends[1];
    return 0;
}

/* In the child. What it inherits of the director it must let go, or the end of a pipe would
 * never be seen. */
static _Noreturn void be_part(struct demo *demo, enum demo_who who, int hear,
                              pid_t director)
{
    struct demo_stage stage = { .ledger = demo->ledger,
                                .folder = demo->folder,
                                .name = part_names[who],
                                .who = who,
                                .hear = hear,
                                .say = demo->reports_in,
                                .step_ms = demo->cli->colour ? STEP_TTY_MS : STEP_MS };
    stage.caller = (struct hf_caller){ .size = sizeof(stage.caller),
                                       .actor_kind = who == DEMO_SUBMITTER ? "human"
                                                                           : "worker",
                                       .actor = part_names[who] };
    for (size_t i = 0; i < DEMO_PARTS; i++)
        if (demo->parts[i].tell >= 0)
            (void)close(demo->parts[i].tell);
    (void)close(demo->reports);
    (void)close(demo->signals);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* the pipe's end tells too, only later */
    if (getppid() != director)
        _exit(1);
    (void)sigprocmask(SIG_SETMASK, &demo->old_mask, NULL);
    _exit(demo_play(&stage));
}

static int start_part(struct demo *demo, enum demo_who who)
{
    int ends[2];
    pid_t director = getpid();
    if (pipe2(ends, O_CLOEXEC) != 0)
        return failed(demo, "pipe");
    demo->parts[who].tell = ends[1];
    pid_t pid = fork();
    if (pid == 0)
        be_part(demo, who, ends[0], director);
    (void)close(ends[0]);
    if (pid < 0)
        return failed(demo, "fork");
    demo->parts[who].pid = pid;
    return 0;
}

/* "Continue." A part that is gone is noticed by its end. */
static void cue(struct demo *demo, enum demo_who who)
{
    (void)!write(demo->parts[who].tell, "g", 1);
}

static void dismiss(struct demo *demo, enum demo_who who)
{
    if (demo->parts[who].tell >= 0)
        (void)close(demo->parts[who].tell);
    demo->parts[who].tell = -1;
}

/* Collects children that ended. One that should not have is a failure. */
static int reap(struct demo *demo)
{
    for (size_t who = 0; who < DEMO_PARTS; who++) {
        int status = 0;
        struct part *part = &demo->parts[who];
        if (!part->pid || waitpid(part->pid, &status, WNOHANG) != part->pid)
            continue;
        part->pid = 0;
        bool expected = demo->ending || (status == 0 && who == DEMO_SUBMITTER) ||
                        (WIFSIGNALED(status) && who == demo->victim);
        if (!expected)
            return hf_fail(&demo->cli->err, HF_EINTERNAL, NULL,
                           "the %s ended too early (wait status 0x%x)", part_names[who],
                           (unsigned)status);
    }
    return 0;
}

static int see_signal(struct demo *demo)
{
    struct signalfd_siginfo info;
    while (read(demo->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        if (info.ssi_signo == SIGCHLD)
            continue;
        demo->signal_seen = (int)info.ssi_signo;
        return hf_fail(&demo->cli->err, HF_EINTERNAL, NULL, "interrupted");
    }
    return reap(demo);
}

/* ---- hearing ----------------------------------------------------------------------- */

/* The next report, told on screen. */
static int hear(struct demo *demo, struct demo_message *ret_message)
{
    for (;;) {
        hf_ms left = demo->began + MOST_MS - now_ms();
        struct pollfd fds[] = { { .fd = demo->reports, .events = POLLIN },
                                { .fd = demo->signals, .events = POLLIN } };
        if (left <= 0 || (poll(fds, 2, (int)left) < 0 && errno != EINTR))
            return hf_fail(&demo->cli->err, HF_EINTERNAL, NULL,
                           "the demo did not finish within %d s", MOST_MS / 1000);
        if (fds[0].revents & POLLIN) {
            struct demo_message message;
            if (read(demo->reports, &message, sizeof(message)) !=
                (ssize_t)sizeof(message))
                return failed(demo, "the pipe of reports");
            if (message.report == DEMO_BROKEN)
                return hf_fail(&demo->cli->err, HF_EINTERNAL, NULL, "%s: %s",
                               part_names[message.who], message.text);
            demo->done += message.report == DEMO_DONE;
            *ret_message = message;
            return tell_report(demo, &message);
        }
        if (fds[1].revents & POLLIN) {
            int rc = see_signal(demo);
            if (rc)
                return rc;
        }
    }
}

/* Hears until this report about this task, which is returned. */
static int hear_until(struct demo *demo, enum demo_report report, const char *task,
                      struct demo_message *ret_message)
{
    struct demo_message message;
    int rc = 0;
    do
        rc = hear(demo, &message);
    while (rc == 0 && (message.report != report || strcmp(message.task, task) != 0));
    if (rc == 0)
        *ret_message = message;
    return rc;
}

/* ---- the story --------------------------------------------------------------------- */

/* The kill is a deed like any other, so the ledger records it: a unit that is created as done. Its
 * time is where the measure of the reclaim begins. */
static int note_kill(struct demo *demo, pid_t pid)
{
    char payload[64];
    struct hf_answer *answer = NULL;
    (void)snprintf(payload, sizeof(payload), "{\"pid\":%d,\"signal\":9}", (int)pid);
    struct hf_work_spec note = { .size = sizeof(note),
                                 .source = HF_SOURCE_CONTROL,
                                 .source_id = "demo-kill",
                                 .kind = DEMO_KILL,
                                 .queue = DEMO_QUEUE,
                                 .payload = payload,
                                 .priority = -1,
                                 .detached = true };
    int rc = hf_work_create(demo->cli->store, &demo->cli->who, &note, 1, HF_ALL_OR_NONE,
                            &answer, &demo->cli->err);
    hf_answer_free(answer);
    return rc;
}

/* What the event of the reclaim says. */
static int tell_proof(struct demo *demo, const char *work_id)
{
    struct cli *cli = demo->cli;
    struct hf_events *events = NULL;
    char line[200] = "the reclaim's event holds no proof";
    int rc = hf_work_events(cli->store, &cli->who, work_id, 0, 1000, &events, &cli->err);
    if (rc)
        return rc;
    for (size_t i = 0; i < hf_events_count(events); i++) {
        const struct hf_event *event = hf_events_at(events, i);
        struct json_t *note = NULL;
        struct hf_span text = { event->payload,
                                event->payload ? strlen(event->payload) : 0 };
        if (!event->payload ||
            hf_json_parse(text, (size_t)HF_MAX_PAYLOAD_BYTES, "payload", &note, NULL))
            continue;
        const struct json_t *proof = hf_json_member(note, "proof");
        const struct json_t *holder = hf_json_member(proof, "holder");
        if (proof)
            (void)snprintf(line, sizeof(line),
                           "proof stored in event %lld by %s: process %lld, %s",
                           (long long)event->event_id, event->actor,
                           (long long)hf_json_as_i64(hf_json_member(holder, "pid")),
                           hf_json_as_text(hf_json_member(proof, "how")));
        hf_json_free(note);
    }
    hf_events_free(events);
    return tell(demo, "ledger", CLI_BOLD, line);
}

/* Both workers are in the middle of a unit; one finishes, the other is killed. */
static int act_kill(struct demo *demo)
{
    char line[120];
    struct demo_message crawl, index, message;
    cue(demo, DEMO_MONITOR);
    cue(demo, DEMO_SUBMITTER);
    int rc = hear_until(demo, DEMO_CREATED, "index", &message);
    if (rc)
        return rc;
    cue(demo, DEMO_WORKER_1);
    cue(demo, DEMO_WORKER_2);
    struct demo_message *last = &message;
    for (size_t in_the_middle = 0; rc == 0 && in_the_middle < 2;) {
        rc = hear(demo, last);
        if (rc || last->report != DEMO_MIDDLE)
            continue;
        *(strcmp(last->task, "crawl") == 0 ? &crawl : &index) = *last;
        in_the_middle++;
    }
    if (rc)
        return rc;
    cue(demo, index.who);
    rc = hear_until(demo, DEMO_DONE, "index", &message);
    if (rc)
        return rc;
    demo->victim = crawl.who;
    pid_t pid = demo->parts[crawl.who].pid;
    rc = note_kill(demo, pid);
    if (rc)
        return rc;
    if (kill(pid, SIGKILL) != 0)
        return failed(demo, "kill");
    (void)snprintf(line, sizeof(line), "kill -9 of %s, process %d, in its step 3",
                   part_names[crawl.who], (int)pid);
    rc = tell(demo, "you", CLI_RED, line);
    if (rc == 0)
        rc = hear_until(demo, DEMO_CLAIMED, "crawl", &message);
    if (rc == 0)
        rc = tell_proof(demo, crawl.work_id);
    return rc;
}

static int answer_wait(struct demo *demo)
{
    struct hf_answer *answer = NULL;
    struct hf_change resume = { .size = sizeof(resume),
                                .verb = HF_VERB_RESUME,
                                .ref = DEMO_APPROVAL,
                                .payload = "{\"approved\":true}" };
    int rc = hf_work_change(demo->cli->store, &demo->cli->who, &resume, 1, HF_ALL_OR_NONE,
                            &answer, &demo->cli->err);
    hf_answer_free(answer);
    return rc ? rc
              : tell(demo, "you", CLI_BOLD,
                     "resume " DEMO_APPROVAL " with {\"approved\":true}");
}

/* A wait, a retry, and a close-out that needs evidence. */
static int act_rest(struct demo *demo)
{
    int rc = 0;
    cue(demo, DEMO_SUBMITTER);
    while (rc == 0 && demo->done < DEMO_TASKS) {
        struct demo_message message;
        rc = hear(demo, &message);
        if (rc == 0 && message.report == DEMO_WAITING)
            rc = answer_wait(demo);
    }
    return rc;
}

/* ---- beginning and end ------------------------------------------------------------- */

static int begin(struct demo *demo)
{
    struct cli *cli = demo->cli;
    int rc = make_folder(demo);
    if (rc == 0)
        rc = take_signals(demo);
    for (size_t who = 0; rc == 0 && who < DEMO_PARTS; who++)
        rc = start_part(demo, (enum demo_who)who);
    if (rc == 0)
        rc = hf_store_open(demo->ledger, NULL, &cli->store, &cli->err);
    if (rc || cli->json || cli->quiet)
        return rc;
    cli_putf(cli, "A ledger in %s\n", demo->folder);
    cli_putf(cli, "Processes: submitter %d, worker-1 %d, worker-2 %d, monitor %d\n\n",
             (int)demo->parts[DEMO_SUBMITTER].pid, (int)demo->parts[DEMO_WORKER_1].pid,
             (int)demo->parts[DEMO_WORKER_2].pid, (int)demo->parts[DEMO_MONITOR].pid);
    return cli_flush(cli);
}

/* Asks the parts to end, waits a while, and ends those that did not. */
static void end_parts(struct demo *demo, bool at_once)
{
    hf_ms until = now_ms() + (at_once ? 0 : END_MS);
    demo->ending = true;
    for (size_t who = 0; who < DEMO_PARTS; who++)
        dismiss(demo, (enum demo_who)who);
    if (demo->parts[DEMO_MONITOR].pid)
        (void)kill(demo->parts[DEMO_MONITOR].pid, SIGTERM);
    for (;;) {
        bool left = false;
        (void)see_signal(demo); /* it is ending anyway */
        for (size_t who = 0; who < DEMO_PARTS; who++)
            left |= demo->parts[who].pid != 0;
        struct pollfd fd = { .fd = demo->signals, .events = POLLIN };
        if (!left || now_ms() >= until)
            break;
        (void)poll(&fd, 1, (int)(until - now_ms()));
    }
    for (size_t who = 0; who < DEMO_PARTS; who++) {
        if (!demo->parts[who].pid)
            continue;
        (void)kill(demo->parts[who].pid, SIGKILL);
        (void)waitpid(demo->parts[who].pid, NULL, 0);
    }
}

/* How this program can be started again from here: its path, below this folder where it
 * lies there. */
static void program_path(char out[PATH_ROOM])
{
    char here[PATH_ROOM];
    ssize_t len = readlink("/proc/self/exe", out, PATH_ROOM - 1);
    out[len > 0 ? len : 0] = '\0';
    size_t prefix = getcwd(here, sizeof(here)) ? strlen(here) : 0;
    if (prefix > 1 && strncmp(out, here, prefix) == 0 && out[prefix] == '/') {
        bool nested = strchr(out + prefix + 1, '/') != NULL;
        memmove(out, out + prefix + (nested ? 1 : 0), strlen(out + prefix) + 1);
        if (!nested) { /* "/holdfast": pass it its folder */
            memmove(out + 1, out, strlen(out) + 1);
            out[0] = '.';
        }
    }
    if (len <= 0)
        (void)snprintf(out, PATH_ROOM, "holdfast");
}

/* One word for a shell. */
static void put_word(struct cli *cli, const char *word)
{
    bool plain = *word && !word[strspn(word, "abcdefghijklmnopqrstuvwxyz"
                                             "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                             "0123456789/._-+:,@%")];
    if (plain) {
        cli_put(cli, word);
        return;
    }
    cli_put(cli, "'");
    for (; *word; word++) {
        if (*word == '\'')
            cli_put(cli, "'\\'");
        char one[2] = { *word, '\0' };
        cli_put(cli, one);
    }
    cli_put(cli, "'");
}

static void put_try(const struct demo *demo, const char *db, const char *rest)
{
    char program[PATH_ROOM];
    program_path(program);
    cli_put(demo->cli, "  ");
    put_word(demo->cli, program);
    if (db) {
        cli_put(demo->cli, " --db ");
        put_word(demo->cli, db);
    }
    cli_putf(demo->cli, " %s\n", rest);
}

static void print_next(const struct demo *demo, bool removed)
{
    struct cli *cli = demo->cli;
    char events[80];
    const char *id = demo->facts.reclaimed_id;
    size_t len = strlen(id);
    (void)snprintf(events, sizeof(events), "work events --id %s",
                   len > 12 ? id + len - 12 : id);
    cli_put(cli, "\nTry next\n");
    if (removed) {
        put_try(demo, "first.db",
                "work create --source manual --source-id hello --payload '{\"n\":1}'");
        put_try(demo, "first.db", "work list --all");
        put_try(demo, NULL, "work claim --help");
        return;
    }
    put_try(demo, demo->ledger, events);
    put_try(demo, demo->ledger, "work list --all");
    put_try(demo, demo->ledger, "doctor");
    cli_put(cli, "\nThe folder is kept; remove it with: rm -r ");
    put_word(cli, demo->folder);
    cli_put(cli, "\n");
}

/* An agent's turn, on a store of its own. */
static int act_agent(struct demo *demo)
{
    char line[300];
    struct demo_agent *act = &demo->agent;
    act->folder = demo->folder;
    int rc = tell(demo, "agent", CLI_BLUE,
                  "a turn: the model calls a tool, which writes one line to tool.log");
    if (rc == 0)
        rc = demo_agent_first(act);
    (void)snprintf(line, sizeof(line),
                   "kill -9 of the agent's worker, pid %d, between the effect and its "
                   "commit",
                   act->pid);
    if (rc == 0)
        rc = tell(demo, "demo", CLI_RED, line);
    if (rc == 0)
        rc = demo_agent_second(act);
    if (rc == 0 && act->effects != 1)
        rc = HF_EINTERNAL;
    if (rc)
        return hf_fail(&demo->cli->err, HF_EINTERNAL, NULL,
                       "the agent's turn was not finished as it should: %lld lines in "
                       "tool.log",
                       (long long)act->effects);
    (void)snprintf(line, sizeof(line),
                   "another worker asked the tool, which found its line: tool.log has "
                   "1 line. \"%.100s\"",
                   act->answer);
    return tell(demo, "agent", CLI_GREEN, line);
}

/* A turn that waits while no process runs. The demonstration itself answers. */
static int act_approval(struct demo *demo)
{
    char line[400];
    struct demo_agent *act = &demo->agent;
    int rc = demo_agent_ask(act);
    (void)snprintf(line, sizeof(line),
                   "a turn: its tool needs an approval; the turn is put away, and its "
                   "worker, pid %d, has ended",
                   act->asker);
    if (rc == 0)
        rc = tell(demo, "agent", CLI_BLUE, line);
    (void)snprintf(line, sizeof(line),
                   "in a second terminal: holdfast --db %.200s/agent.db approve %s",
                   demo->folder, op_short_id(act->wait_id));
    if (rc == 0)
        rc = tell(demo, "you", CLI_BOLD, line);
    if (rc == 0)
        rc = tell(demo, "demo", CLI_DIM, "runs that command itself");
    if (rc == 0)
        rc = demo_agent_approve(act);
    if (rc == 0)
        rc = demo_agent_go_on(act);
    if (rc == 0 && act->payments != 1)
        rc = HF_EINTERNAL;
    if (rc)
        return hf_fail(&demo->cli->err, HF_EINTERNAL, NULL,
                       "the approved turn was not finished as it should: %lld lines in "
                       "payments.log",
                       (long long)act->payments);
    (void)snprintf(
        line, sizeof(line),
        "another worker, pid %d, continues: payments.log has 1 line. \"%.120s\"",
        act->pid, act->paid);
    return tell(demo, "agent", CLI_GREEN, line);
}

/* The parts are gone; what happened is what the ledger says. */
static int conclude(struct demo *demo, bool removes)
{
    struct cli *cli = demo->cli;
    int rc = demo_gather(cli, &demo->facts);
    const char *objection = rc ? NULL : demo_objection(&demo->facts);
    if (objection)
        rc = hf_fail(&cli->err, HF_EINTERNAL, NULL,
                     "the events do not confirm the demo: %s", objection);
    if (rc)
        return rc;
    if (cli->json) {
        cli_ok_begin(cli);
        hf_json_put_str(&cli->writer, "folder", demo->folder);
        hf_json_put_bool(&cli->writer, "kept", !removes);
        demo_json_facts(&cli->writer, &demo->facts);
        hf_json_put_i64(&cli->writer, "agent_effects", demo->agent.effects);
        hf_json_put_str(&cli->writer, "agent_answer", demo->agent.answer);
        hf_json_put_i64(&cli->writer, "agent_payments", demo->agent.payments);
        hf_json_put_str(&cli->writer, "agent_paid", demo->agent.paid);
        cli_ok_end(cli);
    } else if (!cli->quiet) {
        demo_print_facts(cli, &demo->facts);
        print_next(demo, removes);
    }
    return 0;
}

/* As any program that a signal ends: by that signal. */
static void die_of(const struct demo *demo)
{
    (void)signal(demo->signal_seen, SIG_DFL);
    (void)raise(demo->signal_seen); /* blocked until the mask is as it was */
    (void)sigprocmask(SIG_SETMASK, &demo->old_mask, NULL);
}

static void let_go(struct demo *demo, int rc, bool removes)
{
    struct cli *cli = demo->cli;
    hf_store_close(cli->store);
    cli->store = NULL;
    const int fds[] = { demo->reports, demo->reports_in, demo->signals };
    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
        if (fds[i] >= 0)
            (void)close(fds[i]);
    if (demo->folder[0] && removes)
        remove_folder(demo);
    else if (demo->folder[0] && rc)
        cli_note(cli, "the ledger is kept in %s", demo->folder);
}

int check_demo(struct cli *cli)
{
    return cli_given(cli, "db") ? hf_fail(&cli->err, HF_EINVAL, "--db",
                                          "--db is not allowed: the demo creates its own "
                                          "ledger; name its folder with --folder")
                                : 0;
}

int cmd_demo(struct cli *cli)
{
    bool removes = cli_given(cli, "remove");
    struct demo demo = { .cli = cli,
                         .reports = -1,
                         .reports_in = -1,
                         .signals = -1,
                         .victim = DEMO_PARTS,
                         .began = now_ms() };
    for (size_t who = 0; who < DEMO_PARTS; who++)
        demo.parts[who].tell = -1;
    int rc = begin(&demo);
    if (rc == 0)
        rc = act_kill(&demo);
    if (rc == 0)
        rc = act_rest(&demo);
    end_parts(&demo, rc != 0);
    if (rc == 0)
        rc = act_agent(&demo);
    if (rc == 0)
        rc = act_approval(&demo);
    if (rc == 0)
        rc = conclude(&demo, removes);
    let_go(&demo, rc, removes);
    if (demo.signal_seen)
        die_of(&demo);
    return rc;
}
