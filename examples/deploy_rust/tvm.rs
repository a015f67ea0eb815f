//! What a program needs of `tvm/runtime/c_runtime_api.h`: modules, functions and arrays that free
//! themselves, and errors as values.

use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::{fmt, mem, ptr, slice};

/// What the runtime, or this program, says was wrong.
#[derive(Debug)]
pub struct Error(pub String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Device {
    kind: c_int,
    number: c_int,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct DataType {
    code: u8,
    bits: u8,
    lanes: u16,
}

/// `DLTensor` of dlpack.h.
#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device: Device,
    ndim: c_int,
    dtype: DataType,
    shape: *const i64,
    strides: *const i64,
    byte_offset: u64,
}

/// `TVMValue`: an argument or a result, whose code says which.
#[repr(C)]
union Value {
    int: i64,
    handle: *mut c_void,
    text: *const c_char,
    device: Device,
}

const INT: c_int = 0;
const DEVICE: c_int = 6;
const MODULE: c_int = 9;
const FUNCTION: c_int = 10;
const TEXT: c_int = 11;
const ARRAY: c_int = 13;

const CPU: c_int = 1; // of DLDeviceType
const FLOAT: u8 = 2; // of DLDataTypeCode

#[link(name = "tvm_runtime")]
extern "C" {
    fn TVMGetLastError() -> *const c_char;
    fn TVMModLoadFromFile(path: *const c_char, form: *const c_char, out: *mut *mut c_void) -> c_int;
    fn TVMModGetFunction(
        module: *mut c_void, name: *const c_char, imports: c_int, out: *mut *mut c_void,
    ) -> c_int;
    fn TVMModFree(module: *mut c_void) -> c_int;
    fn TVMFuncCall(
        function: *mut c_void, values: *mut Value, codes: *mut c_int, count: c_int,
        result: *mut Value, result_code: *mut c_int,
    ) -> c_int;
    fn TVMFuncFree(function: *mut c_void) -> c_int;
    fn TVMArrayFree(array: *mut Tensor) -> c_int;
    fn TVMArrayCopyFromBytes(array: *mut Tensor, data: *const c_void, bytes: usize) -> c_int;
    fn TVMArrayCopyToBytes(array: *mut Tensor, data: *mut c_void, bytes: usize) -> c_int;
}

fn check(status: c_int) -> Result<(), Error> {
    if status == 0 {
        return Ok(());
    }
    let text = unsafe { CStr::from_ptr(TVMGetLastError()) };
    Err(Error(text.to_string_lossy().into_owned()))
}

fn c_string(text: &str) -> Result<CString, Error> {
    CString::new(text).map_err(|_| Error(format!("{text:?} has a zero byte")))
}

/// A module: a library's, or an executor.
pub struct Module(*mut c_void);

impl Module {
    /// The module of a shared library.
    pub fn load(path: &str) -> Result<Module, Error> {
        let (path, mut handle) = (c_string(path)?, ptr::null_mut());
        check(unsafe { TVMModLoadFromFile(path.as_ptr(), c"so".as_ptr(), &mut handle) })?;
        Ok(Module(handle))
    }

    pub fn function(&self, name: &str) -> Result<Function, Error> {
        let (text, mut handle) = (c_string(name)?, ptr::null_mut());
        check(unsafe { TVMModGetFunction(self.0, text.as_ptr(), 0, &mut handle) })?;
        if handle.is_null() {
            return Err(Error(format!("the module has no function {name}")));
        }
        Ok(Function(handle))
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        unsafe { TVMModFree(self.0) };
    }
}

pub enum Argument {
    Int(i64),
    Text(String),
    Cpu(c_int),
}

/// A packed function.
pub struct Function(*mut c_void);

impl Function {
    pub fn call(&self, arguments: &[Argument]) -> Result<Returned, Error> {
        let mut texts = Vec::new(); // alive during the call
        let (mut values, mut codes) = (Vec::new(), Vec::new());
        for argument in arguments {
            let (value, code) = match argument {
                Argument::Int(int) => (Value { int: *int }, INT),
                Argument::Cpu(number) => {
                    (Value { device: Device { kind: CPU, number: *number } }, DEVICE)
                }
                Argument::Text(text) => {
                    texts.push(c_string(text)?);
                    (Value { text: texts[texts.len() - 1].as_ptr() }, TEXT)
                }
            };
            values.push(value);
            codes.push(code);
        }
        let (mut value, mut code) = (Value { int: 0 }, 0);
        let count = values.len() as c_int;
        let (given, kinds) = (values.as_mut_ptr(), codes.as_mut_ptr());
        check(unsafe { TVMFuncCall(self.0, given, kinds, count, &mut value, &mut code) })?;
        Ok(match code {
            MODULE => Returned::Module(Module(unsafe { value.handle })),
            FUNCTION => Returned::Function(Function(unsafe { value.handle })),
            ARRAY => Returned::Array(Array(unsafe { value.handle as *mut Tensor })),
            _ => Returned::Other,
        })
    }
}

impl Drop for Function {
    fn drop(&mut self) {
        unsafe { TVMFuncFree(self.0) };
    }
}

/// What a function gave back; it frees itself.
pub enum Returned {
    Module(Module),
    #[allow(dead_code)] // held, so that it is freed
    Function(Function),
    Array(Array),
    Other,
}

impl Returned {
    pub fn module(self) -> Result<Module, Error> {
        match self {
            Returned::Module(module) => Ok(module),
            _ => Err(Error("a module is required of the function".into())),
        }
    }

    pub fn array(self) -> Result<Array, Error> {
        match self {
            Returned::Array(array) => Ok(array),
            _ => Err(Error("an array is required of the function".into())),
        }
    }
}

/// An array of the runtime.
pub struct Array(*mut Tensor);

impl Array {
    /// The number of elements.
    pub fn len(&self) -> usize {
        let tensor = unsafe { &*self.0 };
        let shape = unsafe { slice::from_raw_parts(tensor.shape, tensor.ndim as usize) };
        shape.iter().product::<i64>() as usize
    }

    pub fn copy_from(&mut self, data: &[f32]) -> Result<(), Error> {
        let bytes = self.bytes_of_floats()?;
        if data.len() != self.len() {
            return Err(Error(format!("{} elements required, got {}", self.len(), data.len())));
        }
        check(unsafe { TVMArrayCopyFromBytes(self.0, data.as_ptr().cast(), bytes) })
    }

    pub fn to_vec(&self) -> Result<Vec<f32>, Error> {
        let bytes = self.bytes_of_floats()?;
        let mut data = vec![0f32; self.len()];
        check(unsafe { TVMArrayCopyToBytes(self.0, data.as_mut_ptr().cast(), bytes) })?;
        Ok(data)
    }

    fn bytes_of_floats(&self) -> Result<usize, Error> {
        let dtype = unsafe { (*self.0).dtype };
        match (dtype.code, dtype.bits, dtype.lanes) {
            (FLOAT, 32, 1) => Ok(self.len() * mem::size_of::<f32>()),
            other => Err(Error(format!("float32 required, got data type {other:?}"))),
        }
    }
}

impl Drop for Array {
    fn drop(&mut self) {
        unsafe { TVMArrayFree(self.0) };
    }
}
