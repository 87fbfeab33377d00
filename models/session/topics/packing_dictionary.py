"""The shared dictionary of the `deflate` codec: what conversations with assistants say again and again.

Written for this purpose, not taken from anybody's conversations; the likeliest stands last, as deflate wants it. Part
of the format: a packed text can only be read with the dictionary that packed it, so it is never changed, only followed
by another codec.
"""

from __future__ import annotations

_PHRASES = (
    "information because different between something anything everything nothing someone everyone another whether "
    "without through during against before after under again further then once here there when where why how all any "
    "both each few more most other some such only own same than too very just should now about above below from into "
    "available language business customer service account number address company example question answer problem "
    "experience important possible different following necessary recommend recommended consider including especially "
    "usually probably certainly definitely actually basically generally specifically however therefore although though "
    "understand remember forget believe wonder explain describe compare suggest improve increase reduce create provide "
    "include require support change choose follow continue happen start finish return receive deliver payment invoice "
    "project meeting schedule appointment tomorrow yesterday today tonight morning afternoon evening weekend Monday "
    "Tuesday Wednesday Thursday Friday Saturday Sunday January February March April June July August September October "
    "November December minutes hours days weeks months years people person children family friend friends parents "
    "mother father brother sister school university student teacher computer software program function database "
    "website internet password message email phone health doctor medicine hospital symptoms treatment exercise sleep "
    "travel flight hotel restaurant recipe ingredients kitchen garden weather science history music movie book story "
    "character country government water energy money price market research results process system method example "
    "I hope this helps! Let me know if you have any other questions. "
    "I'm sorry to hear that. I'm sorry, but I can't help with that. I apologize for the confusion. "
    "That's a great question! That sounds great! That's great to hear. Thank you so much! You're welcome! "
    "Thank you for your help. Thanks for the information. Sounds good. No problem. Of course! Sure, here is "
    "Here are some of the most important things to consider: Here are a few steps that you can take: "
    "There are several ways to do this. There are a number of different reasons for this. It depends on "
    "First, you need to make sure that you have the Second, Third, Finally, In addition, On the other hand, "
    "For example, if you want to For instance, As a result, In order to As well as In this case, "
    "It is important to note that It's a good idea to You may want to You might want to You should be able to "
    "I would like to know more about I want to know how to I need help with I don't know how to I'm not sure if "
    "I've been thinking about I was wondering if I have a question about I'm looking for a I'm trying to "
    "Can you tell me more about Can you help me with Could you please explain What is the difference between "
    "What do you think about the What are some of the best ways to What is the best way to What would you "
    "How can I make sure that How do I get How much does it cost How long does it take Where can I find "
    "Do you have any suggestions for Do you know if there are any Is there anything else I can help you with? "
    "Please let me know if there is anything else Would you like me to Which one would you like "
    "with the and the for the to the of the in the on the is a in a for a to be it is you can that the this is "
)
_FIELDS = (
    '"}, {"role":"system","content":"","timestamp":17 {"role":"assistant","content":"I '
    '","timestamp":1700000000.0},{"role":"assistant","content":"","timestamp":1800000000.0},'
    '{"role":"user","content":"'
)
DICTIONARY = (_PHRASES + _FIELDS).encode()
