"""LangChain: a chain whose history is kept in Turntide; a second process would go on where the first ended."""

from langchain_core.language_models import FakeListChatModel
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables.history import RunnableWithMessageHistory

from turntide import Memory
from turntide.langchain import TurntideChatMessageHistory

memory = Memory(app="langchain")
model = FakeListChatModel(responses=["Hello Alex.", "You are Alex."])  # stands in for a language model
prompt = ChatPromptTemplate.from_messages([MessagesPlaceholder("history"), ("human", "{said}")])
chat = RunnableWithMessageHistory(
    prompt | model,
    lambda session_id: TurntideChatMessageHistory(memory, session_id, user_id="u-1"),
    input_messages_key="said",
    history_messages_key="history",
)
for said in ["I am Alex.", "Who am I?"]:
    chat.invoke({"said": said}, {"configurable": {"session_id": "s-1"}})
history = TurntideChatMessageHistory(memory, "s-1", user_id="u-1")
print([message.text for message in history.messages])
