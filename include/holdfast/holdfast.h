/* All public headers of libholdfast.
 *
 * Not included: the headers of libholdfast-net (agent.h, config.h, http.h, loop.h, model.h,
 * provider.h, secret.h, tool.h, tools.h, worker.h), since a program that only links with
 * libholdfast cannot call their functions, and those of holdfast/sys/, which are for writers of
 * stores, hosts and simulations.
 */
#ifndef HOLDFAST_HOLDFAST_H
#define HOLDFAST_HOLDFAST_H

#include <holdfast/attach.h>
#include <holdfast/attention.h>
#include <holdfast/bounds.h>
#include <holdfast/child.h>
#include <holdfast/code.h>
#include <holdfast/effect.h>
#include <holdfast/err.h>
#include <holdfast/exec.h>
#include <holdfast/feed.h>
#include <holdfast/ingress.h>
#include <holdfast/job.h>
#include <holdfast/journal.h>
#include <holdfast/lease.h>
#include <holdfast/monitor.h>
#include <holdfast/overview.h>
#include <holdfast/process.h>
#include <holdfast/run.h>
#include <holdfast/schedule.h>
#include <holdfast/session.h>
#include <holdfast/store.h>
#include <holdfast/submit.h>
#include <holdfast/trigger.h>
#include <holdfast/turn.h>
#include <holdfast/turn_json.h>
#include <holdfast/turn_types.h>
#include <holdfast/types.h>
#include <holdfast/version.h>
#include <holdfast/wait.h>
#include <holdfast/work.h>

#endif
