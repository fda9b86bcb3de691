"""What the programs have in common that answer beside Retort.

A side gets a file of requests and a file for its answers, both JSON lines.  A request has `model`, `ids` of a prompt, `positions` in
it, `new_tokens` and `texts`.  An answer has

log_probabilities   of ids[i], given those before it, for each position i
greedy              the ids that follow the prompt
margins             of each of those: how far it lies before the second, in log-probability
tokens              the ids of each text

or `error`.  Answers come in the order of the requests, each as soon as it is there: whoever reads them sees where a side died.
A side that cannot go on after an error ends with AGAIN.
"""

import json
import sys

AGAIN = 75


def sentence(error):
    """What an exception says, with its kind."""
    said = " ".join(str(error).split())
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def answer_all(answer, again=False):
    with open(sys.argv[1], encoding="utf-8") as requests, open(sys.argv[2], "a", encoding="utf-8") as answers:
        for line in requests:
            try:
                found = answer(json.loads(line))
            except Exception as error:  # whatever a program thinks of a model
                found = {"error": sentence(error)}
            answers.write(json.dumps(found) + "\n")
            answers.flush()
            if again and "error" in found:
                sys.exit(AGAIN)
