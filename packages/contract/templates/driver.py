#!/usr/bin/env python3
"""A minimal driver for fermata-contract: a small plane that keeps its state in one file, and the protocol around it.

Run it with:  npx fermata-contract run --plane "python3 driver.py"

To put your own plane under the contract, keep `serve` and `Outside`, and replace `Plane`. It needs Python 3.8 and
nothing else. docs/contract-driver.md describes the protocol.
"""
import fcntl, hashlib, json, os, shutil, sys, threading, time

# ── The world outside: an effect log, and barriers to be killed at ──────────────────────────────────────────────


class Outside:
    def __init__(self, place):
        self.log, self.barriers, self.who = place["log"], place["barriers"], place["who"]
        self.reads = 0

    def reach(self, point):
        """Passes a point: notes it in the trace, and waits while it is held."""
        trace, hold = os.path.join(self.barriers, "trace"), os.path.join(self.barriers, point + ".hold")
        if os.path.exists(trace):
            with open(trace, "a") as file:
                file.write(point + "\n")
        if os.path.exists(hold):
            open(os.path.join(self.barriers, point + ".here." + self.who), "w").close()
            while os.path.exists(hold):
                time.sleep(0.001)

    def append(self, line):
        file = os.open(self.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.write(file, (json.dumps(line) + "\n").encode())
        os.fsync(file)
        os.close(file)

    def body(self, run, step):
        self.append({"kind": "body", "run": run, "step": step, "who": self.who})
        self.reach("body.%s.%s" % (run, step))

    def fire(self, run, step, effect, key, value_of):
        point = "%s.%s.%s" % (run, step, effect["name"])
        self.reach("before." + point)
        value = value_of()
        line = {"kind": "fire", "run": run, "step": step, "effect": effect["name"], "delivery": effect["delivery"]}
        self.append({**line, "key": key, "input": value[0], "value": value[1], "who": self.who})
        self.reach("after." + point)
        return value[1]


# ── A plane: replace this by yours ──────────────────────────────────────────────────────────────────────────────

HELLO = {
    "protocol": 1,
    "plane": "minimal Python plane",
    "version": "1",
    "capabilities": {
        "deliveries": ["keyed", "repeatable"],
        "features": ["gate", "parallel", "nested", "gates-in-node", "fan-out", "loop"],
        "durable": True,
        "processes": "many",
        "deliveryIds": True,
        "fork": False,
        "intents": False,
        "schemas": False,
        "cancel": False,
        "settle": False,
        "history": True,
        "branches": False,
        "announcesCommits": False,
        "copy": True,
        "takeover": False,
        "damage": False,
        "service": None,
    },
    "documentation": [],
}


class Declined(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class Parked(Exception):
    """A lane waits for an answer."""


class Plane:
    """Each run is a file: the workflow, the outcomes of steps, the open gates and the answers."""

    def __init__(self, place):
        self.place, self.outside = place, Outside(place)
        os.makedirs(place["store"], exist_ok=True)
        self.wake = threading.Condition()
        if place["role"] == "worker":
            threading.Thread(target=self.work, daemon=True).start()

    # Every change of a run is made under a lock on the store, and is one replaced file: a kill falls before or after.

    def path(self, run):
        return os.path.join(self.place["store"], run + ".json")

    def read(self, run):
        try:
            with open(self.path(run)) as file:
                return json.load(file)
        except FileNotFoundError:
            raise Declined("unknown", "there is no run " + run)

    def change(self, run, how):
        with open(os.path.join(self.place["store"], "lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            state = None if not os.path.exists(self.path(run)) else self.read(run)
            result = how(state)
            if result is not None:
                with open(self.path(run) + ".new", "w") as file:
                    json.dump(result, file)
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(self.path(run) + ".new", self.path(run))
        with self.wake:
            self.wake.notify_all()

    # The operations.

    def start(self, run, workflow):
        fresh = {"workflow": workflow, "outcomes": {}, "gates": [], "answers": {}, "status": "ready", "value": None}
        self.change(run, lambda state: fresh if state is None else None)
        return {"branch": run}

    def inspect(self, branch):
        state = self.read(branch)
        open_gates = [gate for gate in state["gates"] if gate not in state["answers"]]
        waiting = state["status"] == "waiting"
        return {
            "branch": branch,
            "status": {"ready": "running"}.get(state["status"], state["status"]),
            "waitingFor": [{"kind": "answer", "name": gate} for gate in open_gates] if waiting else [],
            "pending": [{"interrupt": gate, "gate": gate} for gate in open_gates],
            **({"value": state["value"]} if state["status"] == "completed" else {}),
        }

    def rest(self, branch):
        while self.read(branch)["status"] == "ready":
            time.sleep(0.002)
        return self.inspect(branch)

    def resume(self, branch, interrupt, value, deliveryId, intent, forkId, line):
        if line is not None:
            self.outside.reach(line)
        receipt = {"outcome": "refused", "reason": "unknown gate", "branch": None}

        def claim(state):
            if state is None or interrupt not in state["gates"]:
                return None
            known = state["answers"].get(interrupt)
            if known is not None:
                same = known == {"value": value, "delivery": deliveryId}
                receipt.update(outcome="duplicate" if same else "refused", reason="the gate was answered")
                return None
            if any(answer["delivery"] == deliveryId for answer in state["answers"].values()):
                receipt.update(reason="the delivery id was used")
                return None
            receipt.update(outcome="accepted", reason="accepted")
            state["answers"][interrupt] = {"value": value, "delivery": deliveryId}
            state["status"] = "ready"
            return state

        self.change(branch, claim)
        return receipt

    def history(self, branch):
        outcomes = self.read(branch)["outcomes"]
        steps = [{"step": key, "value": value} for key, value in outcomes.items() if "|" not in key]
        return {"steps": steps}

    # The worker: interprets what is ready from the start, and serves what is recorded.

    def work(self):
        while True:
            names = [name[:-5] for name in os.listdir(self.place["store"]) if name.endswith(".json")]
            ready = [run for run in names if self.read(run)["status"] == "ready"]
            for run in ready:
                threading.Thread(target=self.execute, args=(run,), daemon=True).start()
                self.until(run)
            with self.wake:
                self.wake.wait(0.01)

    def until(self, run):
        while self.read(run)["status"] == "ready":
            with self.wake:
                self.wake.wait(0.005)

    def execute(self, run):
        workflow = self.read(run)["workflow"]
        while True:
            seen = len(self.read(run)["answers"])
            try:
                result = {"status": "completed", "value": self.steps(run, workflow["steps"], [], "")}
            except Parked:
                result = {"status": "waiting"}

            def rest(state):
                # What came in meanwhile is served before the run may sleep.
                unseen = result["status"] == "waiting" and len(state["answers"]) != seen
                return None if unseen else {**state, **result}

            self.change(run, rest)
            if self.read(run)["status"] != "ready":
                return

    def steps(self, run, steps, context, at):
        results = []
        for step in steps:
            results.append(self.step(run, step, context + results, at))
        return results

    def step(self, run, step, context, at):
        kind = step["do"]
        if kind == "node":
            return self.node(run, step, context, at)
        if kind == "gate":
            return self.gate(run, step["name"] + at)
        if kind == "nested":
            return self.steps(run, step["steps"], context, at)
        if kind == "loop":
            turns = range(step["times"])
            return [self.steps(run, step["steps"], context + [i], at + "@%d" % i) for i in turns]
        if kind == "parallel":
            return self.lanes([lambda lane=lane: self.steps(run, lane, context, at) for lane in step["lanes"]])
        if kind == "fan-out":
            node, width = step["node"], range(step["width"])
            return self.lanes([lambda i=i: self.node(run, node, context + [i], at + "@%d" % i) for i in width])
        raise Declined("unsupported", "no step " + kind)

    def lanes(self, lanes):
        results = [None] * len(lanes)

        def lane(i):
            try:
                results[i] = ("done", lanes[i]())
            except Parked:
                results[i] = ("parked", None)

        threads = [threading.Thread(target=lane, args=(i,), daemon=True) for i in range(len(lanes))]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        if any(kind == "parked" for kind, _ in results):
            raise Parked()
        return [value for _, value in results]

    def record(self, run, key, value):
        self.change(run, lambda state: {**state, "outcomes": {**state["outcomes"], key: value}})

    def node(self, run, node, context, at):
        step = node["name"] + at
        outcomes = self.read(run)["outcomes"]
        if step in outcomes:
            return outcomes[step]
        self.outside.body(run, step)
        values = []
        for position, effect in enumerate(node["effects"]):
            key = "%s|%s|%d" % (run, step, position)
            if key not in outcomes:
                # The key is the same on every attempt: the receiver may tell a second one by it.
                value = self.outside.fire(run, step, effect, key, lambda: self.receive(effect, context + values))
                self.record(run, key, value)
            values.append(self.read(run)["outcomes"][key])
        self.record(run, step, values[-1] if values else None)
        return values[-1] if values else None

    def receive(self, effect, given):
        """The receiver: what it was asked for and what it gives back, which a repeatable effect reads anew each time."""
        if effect["delivery"] == "repeatable":
            self.outside.reads += 1
            return given, "%s:read-%d-by-%s" % (effect["name"], self.outside.reads, self.outside.who)
        return given, effect["name"] + ":" + hashlib.sha256(json.dumps(given).encode()).hexdigest()[:12]

    def gate(self, run, gate):
        state = self.read(run)
        if gate in state["answers"]:
            return state["answers"][gate]["value"]
        if gate not in state["gates"]:
            self.change(run, lambda state: {**state, "gates": state["gates"] + [gate]})
        raise Parked()


# ── The protocol: a request a line on standard input, a reply a line on standard output ─────────────────────────


def serve(make):
    plane, write = None, threading.Lock()

    def answer(op, request):
        nonlocal plane
        if op == "hello":
            return HELLO
        if op == "open":
            plane = make(request)
            return {}
        if op == "copy":
            shutil.copytree(request["store"], request["to"], dirs_exist_ok=True)
            return {}
        if op == "drop":
            shutil.rmtree(request["store"], ignore_errors=True)
            return {}
        method = getattr(plane, op, None)
        if method is None:
            raise Declined("unsupported", "there is no operation " + op)
        return method(**request)

    def handle(line):
        message = json.loads(line)
        try:
            reply = {"id": message["id"], "reply": answer(message["op"], message["request"])}
        except Declined as declined:
            reply = {"id": message["id"], "error": {"code": declined.code, "message": str(declined)}}
        except Exception as failure:
            reply = {"id": message["id"], "error": {"code": "failed", "message": repr(failure)}}
        with write:
            sys.stdout.write(json.dumps(reply) + "\n")
            sys.stdout.flush()

    for line in sys.stdin:
        # Requests may overlap: one waits at a barrier while others are answered.
        threading.Thread(target=handle, args=(line,), daemon=True).start()
    os._exit(0)


if __name__ == "__main__":
    serve(Plane)
