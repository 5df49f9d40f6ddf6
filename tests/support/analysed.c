#include "support/analysed.h"

#include "support/check.h"
#include "support/random_problem.h"

void analysed_close(analysed *s)
{
    moirai_analysis_free(s->a);
    moirai_plan_free(s->plan);
    moirai_problem_free(s->p);
}

void analysed_parse(analysed *s, const char *json, size_t length)
{
    memset(s, 0, sizeof *s);
    assert_ok(moirai_problem_parse(&s->p, json, length, "by hand"));
    assert_ok(moirai_place(&s->plan, s->p, "heft", NULL));
    assert_ok(moirai_analysis_new(&s->a, s->p, s->plan, NULL));
}

bool analysed_draw(analysed *s, uint64_t seed)
{
    static const char *const placers[] = {"random", "heft", "m-topo"};
    random_spec spec = random_spec_draw(seed, 30);
    moirai_place_options o;
    memset(s, 0, sizeof *s);
    spec.tight = false;
    s->p = random_problem(&spec);
    assert_non_null(s->p);
    moirai_place_options_init(&o);
    o.budget.seed = seed;
    if (moirai_place(&s->plan, s->p, placers[seed % 3], &o)) {
        analysed_close(s);
        return false;
    }
    if (seed % 4 == 0) /* a plan that starts everything later than it could */
        for (int32_t i = 0; i < s->plan->n_ops; i++) {
            s->plan->op_start_ns[i] += 1000;
            s->plan->op_finish_ns[i] += 1000;
        }
    for (int32_t x = 0; seed % 4 == 0 && x < s->plan->n_transfers; x++) {
        s->plan->transfer[x].start_ns += 1000;
        s->plan->transfer[x].finish_ns += 1000;
    }
    if (seed % 4 == 0 && s->plan->n_ops)
        s->plan->makespan_ns += 1000;
    assert_ok(moirai_analysis_new(&s->a, s->p, s->plan, NULL));
    return true;
}

char *analysed_export(const moirai_analysis *a, const char *format, size_t *length)
{
    char *text;
    assert_ok(moirai_export(&text, length, a, format, NULL));
    assert_int_equal(strlen(text), *length);
    return text;
}
