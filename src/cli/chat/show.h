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
    const char *turn_id; /* NULL: the turn goes on elsewhere */
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

struct show;
struct show_methods {
    /* A piece of the answer. */
    void (*text)(struct show *show, struct hf_span text);
    /* What was shown of the answer since the last tool does not count: it begins again. */
    void (*reset)(struct show *show);
    /* The model is called: what it says is a text of its own. */
    void (*model_called)(struct show *show);
    void (*tool_began)(struct show *show, const struct show_tool *tool);
    void (*tool_ended)(struct show *show, const struct show_tool *tool);
    void (*ended)(struct show *show, const struct show_end *end);
    /* A remark to the user. */
    void (*note)(struct show *show, const char *text);
};

/* The first member of each form. */
struct show {
    const struct show_methods *methods;
};

#endif
