if vim.g.loaded_tadpole then
  return
end
vim.g.loaded_tadpole = true

vim.api.nvim_create_user_command('Tadpole', function(args)
  require('tadpole.command').run(args)
end, {
  nargs = '+',
  range = true,
  desc = 'Fix failing tests with Tadpole',
  complete = function(lead, line)
    return require('tadpole.command').complete(lead, line)
  end,
})

vim.api.nvim_create_autocmd('LspProgress', {
  group = vim.api.nvim_create_augroup('tadpole', {}),
  callback = function(event)
    local client = vim.lsp.get_client_by_id(event.data.client_id)
    if client and client.name == 'tadpole' then
      require('tadpole').progress(event.data.params)
    end
  end,
})

if vim.g.tadpole_enable ~= false then
  vim.lsp.enable('tadpole')
end
