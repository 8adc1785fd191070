-- Argo CD's health of Database.example.com, by what Rollcall writes on it. Made by `rollcall health-lua`.
local answers = {
  { type = "Ready", always = true },
}
-- Reasons that degrade whatever else is said.
local failing = {  }
-- Beside Ready stands Stalled where it is for good; beside other types the reason has to tell.
local terminal = { ChildrenFailed = true, ChildrenStuck = true, DeadlineExceeded = true, DeletionStuck = true, OperatorFailed = true, OperatorSilent = true }

-- The base library is all it needs: no useOpenLibs.
local hs = { status = "Healthy", message = "" }
local rank = { Healthy = 1, Suspended = 2, Progressing = 3, Degraded = 4 }

local function worse(status, message)
  if rank[status] > rank[hs.status] or hs.message == "" then
    hs.status = status
    hs.message = message
  end
end

local function find(kind)
  local status = obj.status
  if kind == nil or type(status) ~= "table" or type(status.conditions) ~= "table" then
    return nil
  end
  for _, condition in ipairs(status.conditions) do
    if type(condition) == "table" and condition.type == kind then
      return condition
    end
  end
  return nil
end

-- An answer about an older spec is no answer.
local function current(condition)
  return condition.observedGeneration == obj.metadata.generation
end

local function words(condition)
  if type(condition.message) == "string" and condition.message ~= "" then
    return condition.message
  end
  return tostring(condition.reason)
end

local function judge(condition)
  if condition.observedGeneration == nil and obj.metadata.generation ~= nil then
    return "Progressing", "The schema drops observedGeneration of conditions: see rollcall crd-defaults"
  end
  if not current(condition) then
    return "Progressing", "Waiting for " .. condition.type .. " of the current generation"
  end
  if condition.status == "True" then
    -- Who else says True has not asked the children.
    if condition.reason ~= "AllChildrenReady" then
      return "Progressing", "The condition " .. condition.type .. " is not Rollcall's"
    end
    return "Healthy", words(condition)
  end
  if condition.reason == "ChildrenSuspended" then
    return "Suspended", words(condition)
  end
  if failing[condition.reason] or (condition.type ~= "Ready" and terminal[condition.reason]) then
    return "Degraded", words(condition)
  end
  return "Progressing", words(condition)
end

if obj.metadata.deletionTimestamp ~= nil then
  return { status = "Progressing", message = "Being deleted" }
end

local stalled = find("Stalled")
if stalled ~= nil and stalled.status == "True" and (stalled.observedGeneration == nil or current(stalled)) then
  return { status = "Degraded", message = words(stalled) }
end

local found = false
for _, answer in ipairs(answers) do
  local condition = find(answer.fallback) or find(answer.type)
  if condition ~= nil then
    found = true
    worse(judge(condition))
  elseif answer.always then
    worse("Progressing", "Waiting for the condition " .. answer.type)
  end
end
if not found then
  return { status = "Progressing", message = "Waiting for the condition " .. answers[1].type }
end
return hs
