--- The client's side of Tadpole: asks the server, shows its progress and how its jobs end.
local M = {}

---@class tadpole.Finished
---@field job integer
---@field title string
---@field outcome 'fixed'|'not_fixed'|'nothing_to_fix'|'discarded'|'cancelled'|'failed'|'passed'|'failed_tests'
---@field message string
---@field report? table what `tadpole fix --json` prints

local LEVELS = {
  failed = vim.log.levels.ERROR,
  failed_tests = vim.log.levels.WARN,
  not_fixed = vim.log.levels.WARN,
}

---@param text string
---@param level? integer
function M.notify(text, level)
  vim.notify('Tadpole: ' .. text, level or vim.log.levels.INFO, { title = 'Tadpole' })
end

--- The client of the server, for a buffer or any.
---@param buffer? integer
---@return vim.lsp.Client?
function M.client(buffer)
  return vim.lsp.get_clients({ name = 'tadpole', bufnr = buffer })[1]
    or vim.lsp.get_clients({ name = 'tadpole' })[1]
end

--- Runs a command of the server.
---@param command string
---@param arguments table
---@param on_answer? fun(answer: any)
function M.execute(command, arguments, on_answer)
  local client = M.client(vim.api.nvim_get_current_buf())
  if not client then
    M.notify('no server runs for this buffer; see :checkhealth tadpole', vim.log.levels.ERROR)
    return
  end
  local params = { command = command, arguments = { arguments } }
  client:request('workspace/executeCommand', params, function(error, answer)
    if error then
      M.notify(error.message, vim.log.levels.ERROR)
    elseif on_answer then
      on_answer(answer)
    end
  end)
end

--- Shows how a job ended, and tells whoever listens to the event `User TadpoleFinished`.
---@param finished tadpole.Finished
function M.finished(finished)
  M.notify(finished.title .. ': ' .. finished.message, LEVELS[finished.outcome])
  vim.api.nvim_exec_autocmds('User', { pattern = 'TadpoleFinished', data = finished })
end

--- Shows a step of a job on the command line; the last one is left to |M.finished()|.
---@param params lsp.ProgressParams
function M.progress(params)
  local value = params.value
  if type(value) ~= 'table' or value.kind == 'end' then
    return
  end
  local parts = { 'Tadpole:' }
  if value.percentage then
    table.insert(parts, ('%3d%%'):format(value.percentage))
  end
  table.insert(parts, value.message or value.title)
  vim.api.nvim_echo({ { table.concat(parts, ' ') } }, false, {})
end

return M
