--- `:checkhealth tadpole`: what is missing, and how to mend it.
local M = {}

local function check_neovim()
  if vim.fn.has('nvim-0.11') == 1 then
    vim.health.ok('Neovim ' .. tostring(vim.version()))
  else
    vim.health.error('Neovim is too old', 'Install Neovim 0.11 or newer.')
  end
end

---@return string? program
local function check_program()
  local config = vim.lsp.config.tadpole
  local program = config and type(config.cmd) == 'table' and config.cmd[1]
  if not program then
    vim.health.info('The server is started by a function of yours, so its program is not checked.')
  elseif vim.fn.executable(program) == 1 then
    vim.health.ok('The server is ' .. vim.fn.exepath(program))
    return program
  else
    vim.health.error(program .. ' is not on the search path', {
      'Build it with `make demo` and put it on the search path,',
      "or name it: vim.lsp.config('tadpole', { cmd = { '/path/to/tadpole', 'lsp' } })",
    })
  end
end

local function check_clients()
  local clients = vim.lsp.get_clients({ name = 'tadpole' })
  if not vim.lsp.is_enabled('tadpole') then
    vim.health.warn('Tadpole is not enabled', "Call vim.lsp.enable('tadpole').")
  elseif #clients == 0 then
    vim.health.info('Enabled; no server runs yet. It starts with the first file of a git repository.')
  end
  for _, client in ipairs(clients) do
    vim.health.ok('A server runs for ' .. (client.root_dir or 'no directory'))
  end
end

--- Each line of `tadpole doctor`; it says itself what to do.
---@param program string
local function check_doctor(program)
  local done = vim.system({ program, 'doctor', '--json' }, { text = true }):wait(30000)
  local read, report = pcall(vim.json.decode, done.stdout or '')
  if not read or type(report) ~= 'table' or not report.findings then
    vim.health.error('`tadpole doctor` failed', vim.trim(done.stderr or ''))
    return
  end
  local show = { ok = vim.health.ok, warning = vim.health.warn, problem = vim.health.error }
  for _, finding in ipairs(report.findings) do
    show[finding.state](finding.topic .. ': ' .. finding.detail)
  end
end

function M.check()
  vim.health.start('tadpole')
  check_neovim()
  local program = check_program()
  check_clients()
  if program then
    vim.health.start('tadpole doctor')
    check_doctor(program)
  end
end

return M
