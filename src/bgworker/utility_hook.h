/*
 * utility_hook.h
 *	  Utility statements that concern the background processes.
 */
#ifndef TQ_UTILITY_HOOK_H
#define TQ_UTILITY_HOOK_H

extern void tq_utility_hook_install(void);

#endif /* TQ_UTILITY_HOOK_H */
