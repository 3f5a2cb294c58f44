/* SPDX-License-Identifier: MIT */
/* model.h - models, sessions, and their evaluation
 *
 * For programs that evaluate a model. This header includes gguf.h, compute.h
 * and
 *
 *     model_base.h          models of open files
 *     load.h                places of weights in memory and on devices
 *     adapter.h             LoRA adapters, control vectors
 *     vocab.h               text to tokens and back
 *     session.h             tokens to logits and embeddings; its subjects are
 *                           in session_sequence.h, session_state.h,
 *                           session_memory.h, session_layered.h,
 *                           session_timings.h and session_check.h
 *     eval.h                scans of a text
 *     ppl.h kld.h           perplexity, divergence from a base
 *     baseline.h part.h     files of logits, parts of an evaluation
 *     task.h                multiple-choice tasks
 *     layers.h bisect.h     comparisons by layer and by weight
 *     collect.h             importance data from a text
 *     calibrate.h           bytes of quantized tensors from a text
 *     sensitivity.h         effect of errors of each weight
 *
 *     gguf_file_open(&file, "model.gguf", NULL, &err);
 *     gguf_model_create(&model, file, NULL, &err);
 *     gguf_cpu_backend_create(&params.backend, NULL, &err);
 *     gguf_session_create(&session, model, &params, &err);
 *
 * Everything in this list is freed in the opposite order. gguf.h has the rules
 * that hold in every header.
 */
#ifndef GGUF_MODEL_H
#define GGUF_MODEL_H

#include <gguf/adapter.h>
#include <gguf/baseline.h>
#include <gguf/bisect.h>
#include <gguf/calibrate.h>
#include <gguf/collect.h>
#include <gguf/compute.h>
#include <gguf/eval.h>
#include <gguf/gguf.h>
#include <gguf/kld.h>
#include <gguf/layers.h>
#include <gguf/load.h>
#include <gguf/model_base.h>
#include <gguf/part.h>
#include <gguf/ppl.h>
#include <gguf/sensitivity.h>
#include <gguf/session.h>
#include <gguf/session_check.h>
#include <gguf/session_layered.h>
#include <gguf/session_memory.h>
#include <gguf/session_sequence.h>
#include <gguf/session_state.h>
#include <gguf/session_timings.h>
#include <gguf/task.h>
#include <gguf/vocab.h>

#endif
