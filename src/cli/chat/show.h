/* How a turn is shown while it runs: on a terminal, as plain text, or as JSON lines.
 *
 * All texts come from models, tools and users and are not trusted. No form passes a control
 * character of them on. Texts are borrowed until the method returns.
 */
#ifndef HF_CLI_CHAT_SHOW_H
#define HF_CLI_CHAT_SHOW_H

#include <holdfast/turn_types.h>

/* One call of a tool. The last three are of one that has ended. */
struct show_tool {
    const char *call_id;
    const char *tool;
    struct hf_span args;
    enum hf_tool_outcome outcome;
    const char *text; /* its answer, or why there is none; NULL: nothing */
    hf_ms
        duration_ms; /* -1: it is of the past, and neither that nor the outcome is known */
};

/* The end of a turn. */
struct show_end {
    const char *session_id;
    const char *turn_id; /* NULL: the turn continues elsewhere */
    const char *outcome; /* a word of HF_OUTCOMES */
    bool failed;         /* it has no answer */
    bool cancelled;      /* because that was asked for */
    bool retryable;
    const char *text;  /* the answer, or why there is none */
    const char *issue; /* code of what went wrong; NULL: nothing */
    struct hf_usage usage;
    hf_ms whole_ms;
    bool text_shown; /* by `text` */
};

/* A question about a call. */
enum show_ask {
    SHOW_APPROVAL, /* whether it may be made */
    SHOW_HAPPENED, /* whether it happened */
    SHOW_OUTSIDE   /* its result, or what another program answers */
};

/* A wait of the turn. */
struct show_wait {
    enum show_ask ask;
    const char *session_id;
    const char *wait_id;
    const char *question; /* NULL: none */
    const char *tool;     /* NULL: it is about no call */
    struct hf_span args;  /* JSON; empty: none */
    bool edits;           /* the answer may have other arguments */
    bool here;            /* it is answered at the prompt that follows */
    bool whole;           /* long arguments are not cut */
    const char *answerer; /* the only actor that may answer; NULL: any */
    hf_ms deadline_at;
    const char *policy; /* what happens then; a word of HF_WAIT_POLICIES */
};

/* Its outcome. */
struct show_answer {
    enum show_ask ask;
    const char *wait_id;
    const char *tool;    /* NULL: it is not known here */
    const char *kind;    /* approve, deny, ok, error, timeout, cancelled */
    const char *reason;  /* NULL: none */
    const char *outcome; /* JSON */
    const char *actor;   /* NULL: it was answered at this prompt */
    bool edited;         /* with other arguments */
};

struct show;
struct show_methods {
    /* A piece of the answer. */
    void (*text)(struct show *show, struct hf_span text);
    /* The part of the answer that was shown since the last tool does not count: it begins again. */
    void (*reset)(struct show *show);
    /* The model is called: what it says is a text of its own. */
    void (*model_called)(struct show *show);
    void (*tool_began)(struct show *show, const struct show_tool *tool);
    void (*tool_ended)(struct show *show, const struct show_tool *tool);
    void (*ended)(struct show *show, const struct show_end *end);
    void (*asked)(struct show *show, const struct show_wait *wait);
    void (*answered)(struct show *show, const struct show_answer *answer);
    /* A remark to the user. */
    void (*note)(struct show *show, const char *text);
};

#define SHOW_COMMAND_BYTES 200
/* The command that answers it, yes or no. */
const char *show_command(const struct show_wait *wait, bool yes,
                         char out[SHOW_COMMAND_BYTES]);
/* Whether the question says nothing but that the tool may be called. */
bool show_is_usual(const struct show_wait *wait);
#define SHOW_DATE_BYTES 40
/* "2026-11-19 19:52 UTC" */
const char *show_date(hf_ms at, char out[SHOW_DATE_BYTES]);
/* The effect of the deadline, in words. */
const char *show_policy(const struct show_wait *wait);
/* "pay: approved by anna", not yet made harmless. */
const char *show_answered(const struct show_answer *answer, char *out, size_t room);

/* The first member of each form. */
struct show {
    const struct show_methods *methods;
};

#endif
