-- What a person does in Neovim, without a screen. The results go to the file $RESULTS, one JSON object a line.
local results = assert(io.open(vim.env.RESULTS, 'w'))

local function record(name, value)
  results:write(vim.json.encode({ name = name, value = value }) .. '\n')
  results:flush()
end

local function wait(what, condition)
  if not vim.wait(240000, condition, 20) then
    record('gave up', what)
    vim.cmd('cquit')
  end
end

vim.lsp.config('tadpole', { cmd = { vim.env.TADPOLE, 'lsp' } })

local messages = {}
vim.notify = function(text, level)
  table.insert(messages, { text = text, level = level })
end

-- The server's questions come here.
local questions = {}
vim.ui.select = function(items, options, on_choice)
  local titles = vim.tbl_map(function(item)
    return item.title
  end, items)
  table.insert(questions, { prompt = options.prompt, titles = titles })
  for _, item in ipairs(items) do
    if item.title == 'Trust' or item.title == 'Apply' then
      return on_choice(item)
    end
  end
  on_choice(nil)
end

local finished = {}
vim.api.nvim_create_autocmd('User', {
  pattern = 'TadpoleFinished',
  callback = function(event)
    table.insert(finished, event.data)
  end,
})

local function attached()
  return #vim.lsp.get_clients({ name = 'tadpole', bufnr = 0 }) > 0
end

-- The code of the fix stays an unsaved buffer; the test has the cursor.
vim.cmd.edit('cart.py')
wait('the server for cart.py', attached)
local code = vim.api.nvim_get_current_buf()
vim.cmd.edit('tests/test_cart.py')
wait('the server for the test', attached)

vim.cmd('Tadpole status')
wait('the status', function()
  return #messages > 0
end)
record('status', messages[1].text)

vim.fn.search('test_total')
vim.cmd('Tadpole fix')
wait('the fix', function()
  return #finished > 0
end)
record('finished', finished[1])
record('questions', questions)
record('code', table.concat(vim.api.nvim_buf_get_lines(code, 0, -1, false), '\n'))
record('modified', vim.bo[code].modified)
vim.api.nvim_buf_call(code, function()
  vim.cmd.undo()
end)
record('undone', table.concat(vim.api.nvim_buf_get_lines(code, 0, -1, false), '\n'))

vim.cmd('Tadpole issue Prices are subtracted from the total')
vim.cmd('Tadpole cancel')
wait('the cancelled job', function()
  return #finished > 1
end)
record('cancelled', finished[2])

local lenses
vim.lsp.buf_request(0, 'textDocument/codeLens', {
  textDocument = vim.lsp.util.make_text_document_params(),
}, function(_, answer)
  lenses = answer
end)
wait('the lenses', function()
  return lenses ~= nil
end)
record('lenses', #lenses)

vim.cmd('checkhealth tadpole')
record('health', vim.api.nvim_buf_get_lines(0, 0, -1, false))
record('unknown', (pcall(vim.cmd, 'Tadpole explode')) and messages[#messages].text or 'threw')

results:close()
vim.cmd('qall!')
