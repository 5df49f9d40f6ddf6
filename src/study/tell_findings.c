/* Chapter: where we agree with the paper and where not, and why. */
#include "study/study.h"

void study_tell_findings(study_document *d, const moirai_study *s)
{
    (void)d;
    (void)s;
}
