from django.db import models


class Order(models.Model):
    paid = models.IntegerField(default=0)
