/* Any bytes as the journal of a small study; what is taken must be fit to be shown in every form. */
#include <moirai/study.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    moirai_study_options o;
    moirai_study *s;
    int32_t taken;
    moirai_study_options_init(&o);
    o.networks = "gpt3-tiny";
    if (moirai_study_new(&s, &o))
        abort(); /* the target itself is broken */
    if (!moirai_study_journal_parse(s, (const char *)data, size, "fuzz", &taken) && taken > 0) {
        char *text;
        size_t length;
        if (moirai_study_page(&text, &length, s))
            abort();
        free(text);
        if (moirai_study_json(&text, &length, s))
            abort();
        free(text);
    }
    moirai_study_free(s);
    return 0;
}
