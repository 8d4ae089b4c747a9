/*
 * utility_hook.h
 *	  Utility statements that concern the background processes.
 */
#ifndef TQ_UTILITY_HOOK_H
#define TQ_UTILITY_HOOK_H

extern void tq_worker_watch_utility(void);

#endif /* TQ_UTILITY_HOOK_H */
