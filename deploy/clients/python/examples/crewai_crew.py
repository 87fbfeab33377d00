"""CrewAI: what a crew finds out is found again by its next run, without a model or an embedder for the memory."""

from typing import Any

from crewai import Agent, Crew, Task
from crewai.llms.base_llm import BaseLLM

from turntide import Memory
from turntide.crewai import TurntideCrewMemory


class Scripted(BaseLLM):
    """Stands in for a language model: answers what it was reminded of."""

    def call(self, messages: Any, *_given: Any, **_more: Any) -> str:
        knows = "harbour opens at nine" in str(messages)
        return "Thought: done\nFinal Answer: " + ("I remember: nine." if knows else "The harbour opens at nine.")


memory = TurntideCrewMemory.of(Memory(app="crewai"), "harbour-crew")
for question in ["Find out when the harbour opens.", "When does the harbour open?"]:
    clerk = Agent(role="clerk", goal="answers", backstory="knows the harbour", llm=Scripted(model="scripted"))
    task = Task(description=question, expected_output="a time", agent=clerk)
    print(Crew(agents=[clerk], tasks=[task], memory=memory).kickoff().raw)
