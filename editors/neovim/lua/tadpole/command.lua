--- `:Tadpole`.
local tadpole = require('tadpole')

local M = {}

---@return string
local function uri()
  return vim.uri_from_bufnr(0)
end

--- Asks for the code action "fix this failing test" where the cursor is.
local function fix()
  vim.lsp.buf.code_action({
    apply = true,
    context = { only = { 'quickfix' }, diagnostics = {} },
    filter = function(action)
      return action.command ~= nil
        and (action.command.command or action.command) == 'tadpole.fixTest'
    end,
  })
end

--- What is given, the lines that are chosen, or what the person types.
---@param args vim.api.keyset.create_user_command.command_args
---@param words string[]
---@param on_text fun(text: string)
local function issue_text(args, words, on_text)
  if #words > 0 then
    on_text(table.concat(words, ' '))
  elseif args.range > 0 then
    on_text(table.concat(vim.api.nvim_buf_get_lines(0, args.line1 - 1, args.line2, false), '\n'))
  else
    vim.ui.input({ prompt = 'Issue: ' }, function(text)
      if text and text:match('%S') then
        on_text(text)
      end
    end)
  end
end

---@param status table
local function show_status(status)
  local lines = { status.state }
  for _, job in ipairs(status.jobs) do
    local at = job.place == 0 and (job.percentage or 0) .. '%' or 'waits, ' .. job.place .. ' before it'
    table.insert(lines, ('%d  %s (%s) %s'):format(job.job, job.title, at, job.message))
  end
  tadpole.notify(table.concat(lines, '\n'))
end

local SUBCOMMANDS = {
  fix = fix,
  ['fix-all'] = function()
    tadpole.execute('tadpole.fixAllFailing', { uri = uri() })
  end,
  issue = function(args, words)
    local buffer = uri()
    issue_text(args, words, function(text)
      tadpole.execute('tadpole.fixIssue', { uri = buffer, text = text })
    end)
  end,
  status = function()
    tadpole.execute('tadpole.status', {}, show_status)
  end,
  cancel = function()
    tadpole.execute('tadpole.cancel', {})
  end,
}

---@param args vim.api.keyset.create_user_command.command_args
function M.run(args)
  local words = vim.deepcopy(args.fargs)
  local name = table.remove(words, 1)
  local subcommand = SUBCOMMANDS[name]
  if not subcommand then
    local names = table.concat(vim.fn.sort(vim.tbl_keys(SUBCOMMANDS)), ', ')
    tadpole.notify(('%s is not known; there are %s'):format(name, names), vim.log.levels.ERROR)
    return
  end
  subcommand(args, words)
end

---@param lead string
---@param line string
---@return string[]
function M.complete(lead, line)
  if line:match('Tadpole%s+%S+%s') then
    return {}
  end
  return vim.fn.sort(vim.tbl_filter(function(name)
    return vim.startswith(name, lead)
  end, vim.tbl_keys(SUBCOMMANDS)))
end

return M
