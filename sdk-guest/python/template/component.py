"""The exports of the component. They are those of the world in world.wit."""

from belljar_guest import component

from my_provider import MyProvider

ResourceProvider = component.resource_provider(MyProvider)
# belljar:if tools
ToolProvider = component.tool_provider(MyProvider)
# belljar:end
# belljar:if prompts
PromptProvider = component.prompt_provider(MyProvider)
# belljar:end
