-- The configuration of Neovim's own client; `vim.lsp.config('tadpole', {...})` adds to it or replaces parts of it.

---@type vim.lsp.Config
return {
  cmd = { 'tadpole', 'lsp' },
  filetypes = {
    'python',
    'rust',
    'go',
    'javascript',
    'javascriptreact',
    'typescript',
    'typescriptreact',
  },
  root_markers = { '.tadpole.toml', '.git' },
  workspace_required = true,
  capabilities = {
    -- `tadpole/finished` is shown by this plugin, so the server need not send a message for it.
    experimental = { tadpole = { finished = true } },
  },
  handlers = {
    ['tadpole/finished'] = function(_, result)
      require('tadpole').finished(result)
    end,
  },
}
