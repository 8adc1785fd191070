-- Argo CD's health of an object whose Ready condition Rollcall writes. Copy it for your own kind: into argocd-cm as
-- resource.customizations.health.<group>_<Kind>, or into Argo CD's resource_customizations/<group>/<Kind>/.
local ready, stalled = nil, nil
if obj.status ~= nil and obj.status.conditions ~= nil then
  for _, condition in ipairs(obj.status.conditions) do
    if condition.type == "Ready" then
      ready = condition
    elseif condition.type == "Stalled" and condition.status == "True" then
      stalled = condition
    end
  end
end

if ready == nil then
  return { status = "Progressing", message = "Waiting for a Ready condition" }
end
-- An answer about an older spec is no answer.
if ready.observedGeneration ~= nil and ready.observedGeneration < obj.metadata.generation then
  return { status = "Progressing", message = "Waiting for an answer about the current generation" }
end

local status = "Progressing"
if ready.status == "True" then
  status = "Healthy"
elseif stalled ~= nil or ready.reason == "ChildrenFailed" then
  status = "Degraded"
elseif ready.reason == "ChildrenSuspended" then
  status = "Suspended"
end
return { status = status, message = ready.message }
