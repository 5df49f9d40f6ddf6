/* A folder of files that somebody made to do harm: models and JSON that name what is not theirs, that lie about sizes, that
 * steer terminals or shells. Made by rules, the same ones each time. */
#ifndef MOIRAI_TEST_HOSTILE_H
#define MOIRAI_TEST_HOSTILE_H

/* Fills an existing folder, and one beside it, "outside", that no command may touch. Files are NAME-N.onnx, .json; returns
 * how many were made. Aborts the test where the disk fails. */
int make_hostile_models(const char *folder);
int make_hostile_texts(const char *folder);

#endif
