/*
 * routes.c
 *	  The pages: one line for each, in the order of the navigation.
 */
#include <string.h>

#include "web.h"

const Route routes[] = {
	{.path = "/", .show = page_home},
	{.path = "/login",
	 .show = page_login,
	 .act = session_login,
	 .is_open = true},
	{.path = "/logout", .act = session_logout},
	{.path = "/metrics", .show = page_metrics, .is_open = true},
	{.path = "/live", .show = page_live},
	{.path = "/do", .show = page_do, .act = act_do},
	{.path = "/bulk", .act = act_bulk},
	{.path = "/job", .show = page_job, .act = act_job},
	{.path = "/healthz", .show = page_health_check, .is_open = true},
	{.path = "/queues", .title = "Queues", .show = page_queues},
	{.path = "/queue", .parent = "/queues", .show = page_queue},
	{.path = "/tasks", .title = "Tasks", .show = page_tasks},
	{.path = "/task", .parent = "/tasks", .show = page_task},
	{.path = "/artifact", .parent = "/tasks", .show = page_artifact},
	{.path = "/create",
	 .parent = "/tasks",
	 .show = page_create,
	 .act = act_create},
	{.path = "/groups", .title = "Groups", .show = page_groups},
	{.path = "/group", .parent = "/groups", .show = page_group},
	{.path = "/graph", .parent = "/groups", .show = page_graph},
	{.path = "/gantt", .parent = "/groups", .show = page_gantt},
	{.path = "/report", .parent = "/groups", .show = page_report},
	{.path = "/failures", .title = "Failures", .show = page_failures},
	{.path = "/dead-letters",
	 .title = "Dead letters",
	 .show = page_dead_letters},
	{.path = "/cron", .title = "Cron", .show = page_cron},
	{.path = "/workers", .title = "Workers", .show = page_workers},
	{.path = "/worker", .parent = "/workers", .show = page_worker},
	{.path = "/messages", .title = "Messages", .show = page_messages},
	{.path = "/message", .parent = "/messages", .show = page_message},
	{.path = "/health", .title = "Health", .show = page_health},
	{.path = "/audit", .title = "Audit", .show = page_audit},
	{.path = NULL},
};

const Route *
route_find(const char *path)
{
	for (const Route *route = routes; route->path != NULL; route++)
		if (strcmp(route->path, path) == 0)
			return route;
	return NULL;
}
