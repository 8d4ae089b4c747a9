"""The pages of the admin, by Django's test client; apply() commits, so that these have no transaction."""

import json

from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import TransactionTestCase, override_settings
from django.urls import reverse
from shop import tasks

from tq.django.compat import TaskResultStatus
from tq.django.testing import drain

MISSING = "AAAAAAAAQAOAAAAAAAAAAA"
LIST = "/admin/tq/taskentry/"


class Admin(TransactionTestCase):
    def setUp(self):
        User.objects.create_superuser("root")
        self.client.force_login(User.objects.get(username="root"))
        self.sql("SELECT tq.delete_task(task_id) FROM tq.task_overview")
        self.tasks = [tasks.add.enqueue(n) for n in range(3)] + [tasks.fail.enqueue("<b>bad</b>")]
        drain()
        self.waiting = [tasks.add.using(priority=1).enqueue(n) for n in range(2)]

    def sql(self, text, *values):
        with connection.cursor() as cursor:
            cursor.execute(text, values)
            return cursor.fetchall() if cursor.description else []

    def user(self, *permissions):
        user = User.objects.create_user("-".join(permissions) or "nobody", is_staff=True)
        user.user_permissions.set(
            Permission.objects.filter(content_type__app_label="tq", codename__in=permissions)
        )
        self.client.force_login(user)

    def found(self, **given):
        response = self.client.get(LIST, given)
        self.assertEqual(response.status_code, 200)
        return {task["task_id"] for task in response.context["tasks"]}

    def states(self, results):
        for result in results:
            result.refresh()
        return [result.status.value for result in results]

    def post(self, where=LIST, follow=True, **given):
        return self.client.post(where, given, follow=follow)

    def said(self, response):
        return [str(message) for message in response.context["messages"]]

    def test_list(self):
        self.assertEqual(self.found(), {task.id for task in self.tasks + self.waiting})
        self.assertEqual(self.found(state="failed"), {self.tasks[3].id})
        self.assertEqual(
            self.found(state=["failed", "pending"]),
            {self.tasks[3].id, *(task.id for task in self.waiting)},
        )
        self.assertEqual(self.found(name="shop.tasks.f*"), {self.tasks[3].id})
        self.assertEqual(self.found(error="bad"), {self.tasks[3].id})
        self.assertEqual(self.found(payload='{"args": [2]}'), {self.tasks[2].id})
        self.assertEqual(self.found(queue="shop/mail"), set())
        self.assertEqual(self.found(created_after="2999-01-01"), set())
        self.assertEqual(len(self.found(created_before="2999-01-01 10:00")), 6)
        response = self.client.get(LIST)
        self.assertContains(response, "ValueError: &lt;b&gt;bad")
        self.assertNotContains(response, "<b>bad")

    def test_what_is_no_filter(self):
        self.assertNotContains(self.client.get(LIST), 'value="null"')
        response = self.client.get(LIST, {"payload": "x", "created_after": "y"})
        self.assertEqual(set(response.context["form"].errors), {"payload", "created_after"})
        response = self.client.get(LIST, {"queue": "a b"})
        self.assertEqual(len(self.said(response)), 1, self.said(response))

    def test_queues_of_others(self):
        ((other,),) = self.sql("SELECT tq.enqueue('other/queue')")
        self.assertNotIn(other, self.found())
        self.assertEqual(self.found(queue="other/*"), {other})

    def test_pages(self):
        for n in range(150):
            tasks.add.using(queue_name="mail").enqueue(n)
        response = self.client.get(LIST, {"queue": "shop/mail"})
        self.assertEqual(len(response.context["tasks"]), 100)
        more = self.client.get(f"{LIST}?{response.context['next']}")
        self.assertEqual((len(more.context["tasks"]), more.context["next"]), (50, ""))

    def test_ticked(self):
        response = self.post(
            action="cancel", _selected_action=[self.waiting[0].id, MISSING, "x'", ""]
        )
        self.assertEqual(self.states(self.waiting), ["FAILED", "READY"])
        self.assertIn("Cancel: 1 task", self.said(response))
        self.assertTrue(
            any(one.startswith(f"{MISSING}: ") for one in self.said(response)), self.said(response)
        )
        self.assertEqual(
            list(LogEntry.objects.values_list("object_id", "change_message")),
            [(self.waiting[0].id, "Cancel")],
        )
        self.post(action="rerun", _selected_action=[self.waiting[0].id, self.tasks[3].id])
        self.assertEqual(self.states([self.waiting[0], self.tasks[3]]), ["READY", "READY"])
        self.post(action="priority highest", _selected_action=[self.waiting[1].id])
        self.assertEqual(
            self.sql(
                "SELECT priority FROM tq.task_overview WHERE task_id = %s", self.waiting[1].id
            ),
            [("highest",)],
        )
        self.post(action="delete", _selected_action=[self.tasks[1].id])
        self.assertNotIn(self.tasks[1].id, self.found())

    def test_all_that_are_found(self):
        response = self.post(f"{LIST}?state=pending", action="cancel", all="yes")
        self.assertContains(response, "the filter finds 2 tasks")
        self.assertContains(response, "shop/default: 2 pending")
        self.assertEqual(self.states(self.waiting), ["READY", "READY"])
        response = self.post(f"{LIST}?state=pending", action="cancel", all="yes", sure="yes")
        self.assertEqual(self.said(response), ["Cancel: 2 tasks"])
        self.assertEqual(self.states(self.waiting), ["FAILED", "FAILED"])
        self.assertIn(
            '{"queue": "shop/*", "state": ["pending"]}: 2', LogEntry.objects.get().change_message
        )
        response = self.post(f"{LIST}?name=shop.tasks.add", action="cancel", all="yes", sure="yes")
        self.assertEqual(self.said(response)[0], "Cancel: 0 tasks")
        self.assertIn("not done with 5: ", self.said(response)[1])
        for action in ("now", "priority low", "rerun", "schedule", "redrive", "discard", "delete"):
            with self.subTest(action):
                self.assertNotIn(
                    "TQ",
                    str(
                        self.said(
                            self.post(f"{LIST}?state=failed", action=action, all="yes", sure="yes")
                        )
                    ),
                )

    def test_in_requests_that_are_transactions(self):
        connection.settings_dict["ATOMIC_REQUESTS"] = True
        try:
            self.assertEqual(
                self.said(
                    self.post(f"{LIST}?state=pending", action="cancel", all="yes", sure="yes")
                ),
                ["Cancel: 2 tasks"],
            )
        finally:
            connection.settings_dict["ATOMIC_REQUESTS"] = False

    def test_task(self):
        response = self.client.get(f"{LIST}{self.tasks[3].id}/change/")
        self.assertContains(response, "Traceback (most recent call last)")
        self.assertContains(response, "ValueError: &lt;b&gt;bad")
        self.assertNotContains(response, "<b>bad")
        self.assertContains(response, "tq.rerun_task")
        self.assertContains(self.client.get(f"{LIST}{self.tasks[2].id}/change/"), "<pre>2</pre>")
        response = self.post(f"{LIST}{self.waiting[0].id}/change/", action="cancel")
        self.assertContains(response, "canceled")
        self.assertEqual([str(entry.user) for entry in response.context["log"]], ["root"])
        self.assertRedirects(
            self.post(f"{LIST}{self.waiting[0].id}/change/", action="delete", follow=False), LIST
        )
        self.assertEqual(self.client.get(f"{LIST}{self.waiting[0].id}/change/").status_code, 404)
        self.assertEqual(self.client.get(f"{LIST}x/change/").status_code, 404)

    def test_permissions(self):
        ticked = {"action": "cancel", "_selected_action": [self.waiting[0].id]}
        self.user("view_taskentry")
        response = self.client.get(LIST)
        self.assertEqual((response.status_code, response.context["actions"]), (200, []))
        self.assertEqual(self.post(**ticked).status_code, 403)
        self.assertEqual(self.post(action="cancel", all="yes").status_code, 403)
        self.assertEqual(
            self.post(f"{LIST}{self.waiting[0].id}/change/", action="cancel").status_code, 403
        )
        self.user("view_taskentry", "change_taskentry")
        self.assertEqual(
            self.post(action="delete", _selected_action=[self.tasks[0].id]).status_code, 403
        )
        self.assertEqual(self.states(self.waiting), ["READY", "READY"])
        self.assertEqual(self.post(**ticked).status_code, 200)
        self.assertEqual(self.states(self.waiting), ["FAILED", "READY"])
        for page in ("add/", f"{self.tasks[0].id}/delete/"):
            self.assertEqual(self.client.get(LIST + page).status_code, 403)
        self.user()
        for page in (LIST, f"{LIST}{self.tasks[0].id}/change/"):
            self.assertEqual(self.client.get(page).status_code, 403)
        self.client.logout()
        self.assertRedirects(self.client.get(LIST), f"{reverse('admin:login')}?next={LIST}")
        self.assertEqual(self.client.post(LIST, ticked).status_code, 302)

    def test_rights_of_the_role(self):
        self.sql("CREATE ROLE shop_reader")
        try:
            self.sql("GRANT USAGE ON SCHEMA public TO shop_reader")
            self.sql("GRANT ALL ON ALL TABLES IN SCHEMA public TO shop_reader")
            self.sql("GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO shop_reader")
            self.sql("SELECT tq.grant_queue('shop_reader', 'shop/*', 'read')")
            self.sql("SET ROLE shop_reader")
            self.assertEqual(len(self.found()), 6)
            response = self.post(action="cancel", _selected_action=[self.waiting[0].id])
            self.assertIn("scopes are not sufficient", self.said(response)[0])
            self.assertEqual(
                self.said(self.post(action="cancel", all="yes", sure="yes"))[0], "Cancel: 0 tasks"
            )
            self.sql("RESET ROLE")
            self.assertEqual(self.states(self.waiting), ["READY", "READY"])
        finally:
            self.sql("RESET ROLE")
            self.sql("DROP OWNED BY shop_reader")
            self.sql("DROP ROLE shop_reader")

    def test_two_backends(self):
        name = TaskResultStatus.__module__.split(".base")[0]
        with override_settings(
            TASKS={
                "default": {"BACKEND": "tq.django.Backend", "OPTIONS": {"prefix": "shop/"}},
                "other": {"BACKEND": "tq.django.Backend"},
                "dummy": {"BACKEND": f"{name}.backends.dummy.DummyBackend"},
            }
        ):
            other = tasks.add.using(backend="other").enqueue(1)
            self.assertEqual(self.found(backend="other"), {other.id})
            self.assertNotIn(other.id, self.found())
            self.assertContains(
                self.client.get(LIST, {"backend": "other"}), f"{other.id}/change/?backend=other"
            )
        with override_settings(
            TASKS={"default": {"BACKEND": f"{name}.backends.dummy.DummyBackend"}}
        ):
            self.assertEqual(self.client.get(LIST).status_code, 404)

    def test_ids_that_look_quoted(self):
        """Django writes "_" as "_5F" in the links of its log, and reads "_2F" as "/"."""
        for task_id in ("_2FAAAA_QAO_5FAA_3AAAA", "AAAA_22_QAOA_5F_25AA_w"):
            self.sql("SELECT tq.enqueue('shop/mail', task_id => %s)", task_id)
            link = reverse("admin:tq_taskentry_change", args=[task_id])
            self.assertContains(self.client.get(LIST), link)
            for address in (link, reverse("admin:tq_taskentry_change", args=[quote(task_id)])):
                self.assertContains(self.client.get(address), task_id)
            self.client.post(link, {"action": "cancel"})
            entry = LogEntry.objects.get(object_id=task_id)
            self.assertContains(self.client.get(reverse("admin:index")), entry.get_admin_url())
            self.assertContains(self.client.get(entry.get_admin_url()), "canceled")

    def test_error_of_another_client(self):
        for error in ('"text"', '{"message": "m"}', "null"):
            result = tasks.add.using(queue_name="mail").enqueue(1)
            self.sql("SELECT FROM tq.claim_work('shop/mail', 'g', 'w')")
            self.sql("SELECT tq.report_failed(%s, 0, error => %s::jsonb)", result.id, error)
            self.assertEqual(self.client.get(f"{LIST}{result.id}/change/").status_code, 200)
            result.refresh()
            self.assertEqual(len(result.errors), 1)
            self.assertIn(result.errors[0].traceback, (json.loads(error), "m", "failed"))
