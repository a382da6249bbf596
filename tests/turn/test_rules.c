/* The transition table itself: sorted, complete, and the documentation's source. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/turn/machine.h"
#include "support/unit.h"

/* What each state takes, by hand: the seed's table and the levers. */
static const struct {
    enum hf_turn_state state;
    const char *events;
} taken[] = {
    { HF_TURN_PREPARING, "poll cancel finish" },
    { HF_TURN_PREPARE_ITERATION, "poll cancel finish" },
    { HF_TURN_WAITING_SURFACE, "synced sync_failed cancel finish" },
    { HF_TURN_WAITING_LLM, "llm_done llm_failed cancel finish" },
    { HF_TURN_WAITING_TOOLS, "tool_results cancel finish" },
    { HF_TURN_WAITING_EXEC, "exec_done cancel finish" },
    { HF_TURN_WAITING_CHECKPOINT, "checkpoint cancel finish" },
    { HF_TURN_WAITING_SLEEP, "sleep_noted sleep_over cancel finish" },
};

static void every_state_takes_exactly_its_events(void **state)
{
    (void)state;
    for (size_t s = 0; s < sizeof(taken) / sizeof(taken[0]); s++) {
        char found[128] = "";
        for (enum hf_turn_event event = HF_ON_POLL; event < HF_ON_COUNT; event++) {
            bool any = false;
            for (size_t i = 0; i < hf_turn_rule_count; i++)
                any = any || (hf_turn_rules[i].from == taken[s].state &&
                              hf_turn_rules[i].on == event);
            size_t used = strlen(found);
            if (any)
                snprintf(found + used, sizeof(found) - used, "%s%s", used ? " " : "",
                         hf_turn_event_name(event));
        }
        assert_string_equal(found, taken[s].events);
    }
}

static void rules_are_sorted_and_each_group_ends_without_a_guard(void **state)
{
    (void)state;
    for (size_t i = 0; i < hf_turn_rule_count; i++) {
        const struct hf_turn_rule *rule = &hf_turn_rules[i];
        const struct hf_turn_rule *after = i + 1 < hf_turn_rule_count ? rule + 1 : NULL;
        bool last = !after || after->from != rule->from || after->on != rule->on;
        assert_true(!after || rule->from <= after->from);
        assert_int_equal(rule->guard == NULL, last);
        assert_int_equal(rule->when[0] == '\0' && rule->guard, 0);
        assert_true(rule->does[0] != '\0');
        assert_true(rule->to != 0);
        assert_true(rule->from != HF_TURN_FINISHED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_state_takes_exactly_its_events),
        cmocka_unit_test(rules_are_sorted_and_each_group_ends_without_a_guard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
