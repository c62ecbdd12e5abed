"""anyio: a worker thread begins its job before the job is cancelled."""

import asyncio
import threading
import time
from concurrent.futures import Future
from functools import partial

import anyio._backends._asyncio as backend
from anyio import create_task_group, to_thread


class LateThread(backend.WorkerThread):
    def run(self):
        time.sleep(0.3)  # the worker thread does not get the processor
        super().run()


async def main():
    event, future = threading.Event(), Future()

    def wait_event():
        future.set_result(event.wait(5))

    backend.WorkerThread = LateThread
    async with create_task_group() as group:
        group.start_soon(partial(to_thread.run_sync, abandon_on_cancel=True), wait_event)
        await asyncio.sleep(0.1)
        group.cancel_scope.cancel()
    event.set()
    future.result(2)  # TimeoutError: the job was cancelled before it began


asyncio.run(main())
