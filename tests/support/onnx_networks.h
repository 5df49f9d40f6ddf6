/* Networks that everybody knows, as ONNX models made from their papers' tables; weights are named, not stored. */
#ifndef MOIRAI_TEST_ONNX_NETWORKS_H
#define MOIRAI_TEST_ONNX_NETWORKS_H

#include "support/onnx_maker.h"

/* Each fills an empty wire with the whole model. Batch 1, 224 x 224 pixels or 128 tokens; batch norms folded into
 * convolutions, as exporters do. */
void make_resnet50(wire *model);
void make_vgg16(wire *model);
void make_bert_base(wire *model);

#endif
