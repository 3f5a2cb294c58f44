/* SPDX-License-Identifier: MIT */
/* model.h - models, sessions, and what is measured with them
 *
 * For programs that evaluate a model. This header includes gguf.h, compute.h
 * and
 *
 *     model_base.h load.h adapter.h    a model of an open file, its weights in
 *                                      memory, LoRA adapters
 *     vocab.h                          text to tokens and back
 *     session.h                        tokens to logits and embeddings
 *     eval.h kld.h baseline.h part.h   perplexity, divergence, and what is
 *                                      stored of them
 *     task.h layers.h bisect.h         multiple choice, layer by layer, weight
 *                                      by weight
 *     collect.h                        importance data from a text
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
#include <gguf/collect.h>
#include <gguf/compute.h>
#include <gguf/eval.h>
#include <gguf/gguf.h>
#include <gguf/kld.h>
#include <gguf/layers.h>
#include <gguf/load.h>
#include <gguf/model_base.h>
#include <gguf/part.h>
#include <gguf/session.h>
#include <gguf/task.h>
#include <gguf/vocab.h>

#endif
