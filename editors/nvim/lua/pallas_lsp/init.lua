-- Commands, the status line and the fallback for Neovim 0.10.
local config = require('pallas_lsp.config')

local M = {}

local function say(text, level)
  vim.notify('Pallas LSP: ' .. text, level or vim.log.levels.INFO)
end

--- The client of a buffer, or nil with a message that says what to do.
function M.client(buffer)
  local client = vim.lsp.get_clients({ name = config.name, bufnr = buffer or 0 })[1]
  if client == nil then
    say('no server serves this buffer. Open a Python file, or see :checkhealth pallas_lsp', vim.log.levels.WARN)
  end
  return client
end

local function request(client, method, params, on_answer)
  local function handler(err, answer)
    if err then
      say(err.message or tostring(err), vim.log.levels.ERROR)
    elseif on_answer then
      on_answer(answer)
    end
  end
  if vim.fn.has('nvim-0.11') == 1 then
    client:request(method, params, handler, 0)
  else
    client.request(method, params, handler, 0)
  end
end

--- Let the server carry out one of its commands.
function M.execute(command, arguments, on_answer)
  local client = M.client()
  if client then
    request(client, 'workspace/executeCommand', { command = 'pallas-lsp.' .. command, arguments = arguments }, on_answer)
  end
end

local function this_file()
  return { vim.uri_from_bufnr(0) }
end

local function tell(answer)
  if type(answer) == 'table' and type(answer.message) == 'string' and answer.message ~= '' then
    say(answer.message)
  end
end

--- A buffer that shows text and is not written.
local function show(name, text, filetype)
  vim.cmd('botright new')
  local buffer = vim.api.nvim_get_current_buf()
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, vim.split(text, '\n'))
  vim.bo[buffer].buftype, vim.bo[buffer].bufhidden, vim.bo[buffer].swapfile = 'nofile', 'wipe', false
  vim.bo[buffer].modifiable, vim.bo[buffer].filetype = false, filetype
  pcall(vim.api.nvim_buf_set_name, buffer, name)
  vim.keymap.set('n', 'q', '<Cmd>close<CR>', { buffer = buffer, desc = 'Close' })
end

--- Show a rule's page; without a name the rule of the diagnostic under the cursor.
function M.explain(rule)
  if not rule or rule == '' then
    local line = vim.api.nvim_win_get_cursor(0)[1] - 1
    for _, each in ipairs(vim.diagnostic.get(0, { lnum = line })) do
      if each.source == 'pallas' then
        rule = each.code
      end
    end
  end
  if not rule or rule == '' then
    return say('no diagnostic of Pallas LSP is on this line; name a rule: :PallasLsp explain RULE')
  end
  M.execute('explainRule', { rule, { show = false } }, function(page)
    show('pallas-rule://' .. rule, page, 'markdown')
  end)
end

--- Show what the kernel launched at the cursor became: 'jaxpr', 'mlir' or 'ptx'.
function M.view(kind)
  local client = M.client()
  if not client then
    return
  end
  local line = vim.api.nvim_win_get_cursor(0)[1] - 1
  local params = { textDocument = { uri = vim.uri_from_bufnr(0) }, line = line, kind = kind }
  request(client, 'pallas/views', params, function(answer)
    if #answer.views == 0 then
      return say(answer.reason)
    end
    local parts = {}
    for _, view in ipairs(answer.views) do
      table.insert(parts, '// ' .. view.title .. '\n' .. view.text)
    end
    show(('pallas-%s://%s'):format(kind, answer.kernel), table.concat(parts, '\n\n'), kind == 'mlir' and 'mlir' or '')
  end)
end

--- End the server and start another.
function M.restart()
  local buffers = {}
  for _, client in ipairs(vim.lsp.get_clients({ name = config.name })) do
    for buffer in pairs(client.attached_buffers) do
      buffers[buffer] = true
    end
    vim.lsp.stop_client(client.id)
  end
  if next(buffers) == nil then
    buffers[vim.api.nvim_get_current_buf()] = true
  end
  local tries = 0
  local function again()
    tries = tries + 1
    if #vim.lsp.get_clients({ name = config.name }) > 0 and tries < 100 then
      return vim.defer_fn(again, 50)
    end
    for buffer in pairs(buffers) do
      if vim.api.nvim_buf_is_valid(buffer) then
        M.start(buffer)
      end
    end
  end
  again()
end

--- Start the server for a buffer, or attach the buffer to one that runs for its folder.
function M.start(buffer)
  local client = config.client()
  client.root_dir = vim.fs.root and vim.fs.root(buffer, config.root_markers)
    or vim.fs.dirname(vim.fs.find(config.root_markers, { path = vim.api.nvim_buf_get_name(buffer), upward = true })[1])
  local user = vim.lsp.config and vim.lsp.config[config.name]
  if type(user) == 'table' then
    client = vim.tbl_deep_extend('force', client, user)
  end
  return vim.lsp.start(client, { bufnr = buffer })
end

--- For a status line: '', 'Pallas 2/3' or 'Pallas 2/3!' (not all is well).
function M.statusline(buffer)
  local status = config.status[vim.uri_from_bufnr(buffer or 0)]
  if not status or type(status.kernels) ~= 'table' or status.kernels.found == 0 then
    return ''
  end
  local mark = status.busy and '…' or (status.health == 'ok' and '' or '!')
  return ('Pallas %d/%d%s'):format(status.kernels.reached, status.kernels.found, mark)
end

local function status()
  local known = config.status[vim.uri_from_bufnr(0)]
  if not known then
    return say('nothing is known of this buffer yet')
  end
  local lines = { known.message }
  for _, problem in ipairs(known.problems) do
    table.insert(lines, ('%s. %s'):format(problem.message, problem.remedy))
  end
  say(table.concat(lines, '\n'))
end

M.commands = {
  restart = M.restart,
  log = function()
    vim.cmd.tabnew(vim.lsp.get_log_path())
  end,
  check = function()
    M.execute('checkFile', this_file(), function()
      status()
    end)
  end,
  workspace = function()
    M.execute('checkWorkspace', {}, tell)
  end,
  confirm = function()
    M.execute('confirm', this_file(), tell)
  end,
  cancel = function()
    M.execute('cancel', {})
  end,
  shapes = function()
    M.execute('learnShapes', this_file(), tell)
  end,
  explain = M.explain,
  jaxpr = function()
    M.view('jaxpr')
  end,
  mlir = function()
    M.view('mlir')
  end,
  ptx = function()
    M.view('ptx')
  end,
  status = status,
  trust = function()
    M.execute('trust', this_file(), function(folder)
      say(folder .. ' is trusted')
    end)
  end,
  debug = function()
    M.execute('debugInformation', {}, function(text)
      show('pallas-debug://information', text, 'json')
    end)
  end,
}

--- Make :PallasLsp and, before Neovim 0.11, start the server for Python files.
function M.setup()
  vim.api.nvim_create_user_command('PallasLsp', function(arguments)
    local name, rest = arguments.fargs[1], arguments.fargs[2]
    local command = M.commands[name]
    if not command then
      return say(('there is no :PallasLsp %s; see :help pallas-lsp-commands'):format(name), vim.log.levels.ERROR)
    end
    command(rest)
  end, {
    nargs = '+',
    desc = 'Pallas LSP',
    complete = function(lead, line)
      if #vim.split(line, '%s+') > 2 then
        return {}
      end
      local names = vim.tbl_filter(function(name)
        return vim.startswith(name, lead)
      end, vim.tbl_keys(M.commands))
      table.sort(names)
      return names
    end,
  })
  if vim.lsp.enable == nil then -- before 0.11
    vim.api.nvim_create_autocmd('FileType', {
      pattern = config.filetypes,
      group = vim.api.nvim_create_augroup('pallas_lsp', {}),
      callback = function(event)
        M.start(event.buf)
      end,
    })
  end
end

return M
